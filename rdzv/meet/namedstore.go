package meet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// namedStore is the plan for --store HOST[:PORT]. An agent on that host hosts; if there are
// several, the one that has the host lock.
func namedStore(ctx context.Context, c *Config) (*plan, error) {
	host, port, err := ParseStore(c.Store)
	if err != nil {
		return nil, err
	}
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.hosting, p.searched = false, p.ports
	if p.shared != nil {
		p.searched = append(slices.Clip(p.ports), sharedPorts(c)...)
	}
	if port != 0 {
		p.ports, p.searched, p.named = []int{port}, []int{port}, true
		p.otherServiceHint = fmt.Sprintf("another service uses that port: "+
			"--store %s, without a port, chooses a free one", host)
	}
	p.hint = fmt.Sprintf("an agent on host %q, or rdzv store there, hosts the store: is it running? "+
		"All nodes must run the same command, or be given the same --job NAME", host)
	p.sources = []source{named(c, []string{host}, 0, p.searched)}
	if p.addrs, err = ownStoreAddrs(ctx, c, host); err != nil {
		return nil, err
	}
	if len(p.addrs) > 0 {
		p.sources = []source{fixed(host, 0, p.addrs, p.searched)}
	}
	local := len(p.addrs) > 0 && !slices.ContainsFunc(p.addrs, notLoopback)
	if port == 0 && !c.hasRank() && !local {
		p.otherJobs = func(b beacon.Beacon) bool { return isAt(b, host) }
	}
	return p, nil
}

func notLoopback(a netip.Addr) bool { return !a.IsLoopback() }

// isAt reports whether the sender of a beacon is the host with that name or address.
func isAt(b beacon.Beacon, host string) bool {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return sameHost(b.Host, host)
	}
	return slices.ContainsFunc(b.Addrs, func(ap netip.AddrPort) bool { return ap.Addr() == a })
}

// ParseStore parses the value of --store, HOST or HOST:PORT. HOST is a name or an address; an IPv6
// address is in brackets if a port follows. Without a port the result is port 0.
func ParseStore(store string) (host string, port int, err error) {
	bad := fmt.Errorf("cannot use store %q: not HOST or HOST:PORT", store)
	inside, bracket := strings.CutPrefix(store, "[")
	host, digits, splitErr := net.SplitHostPort(store)
	switch {
	case splitErr == nil:
		if port, err = strconv.Atoi(digits); err != nil || port < 1 || port > 65535 {
			return "", 0, bad
		}
	case bracket && strings.HasSuffix(inside, "]"):
		host = strings.TrimSuffix(inside, "]")
	default:
		host = store
	}
	_, notAddr := netip.ParseAddr(host)
	notInName := func(r rune) bool { return strings.ContainsRune(":/,%[]@", r) || r <= ' ' }
	if host == "" || notAddr != nil && strings.ContainsFunc(host, notInName) ||
		bracket && !strings.Contains(host, ":") {
		return "", 0, bad
	}
	return host, port, nil
}

// Resolvers may take many seconds to fail. A host recognises its own name without one, so it waits
// only briefly for further addresses.
const (
	resolveTimeout = 5 * time.Second
	ownNameTimeout = 500 * time.Millisecond
)

// ownStoreAddrs returns the addresses on which this agent would host the store; none if host is
// another host. If host is an address, only that one is used. A name means all addresses of this
// host, because it may resolve to an address that others cannot use: Debian maps a host's own name
// to 127.0.1.1.
func ownStoreAddrs(ctx context.Context, c *Config, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return c.ownAddrs([]netip.Addr{a})
	}
	if host == "localhost" {
		return loopbackAddrs[:1], nil
	}
	limit := ownNameTimeout
	if !sameHost(host, c.Host) {
		limit = resolveTimeout
	}
	resolveCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	named, _ := c.Resolve(resolveCtx, host) // an unknown name is another host's
	own, err := c.ownAddrs(named)
	if err != nil || len(own) == 0 && !sameHost(host, c.Host) {
		return nil, err
	}
	all, err := c.listenAddrs()
	all = append(all, slices.DeleteFunc(own, netip.Addr.IsLoopback)...)
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all), err
}

// sameHost reports whether two names may be the same host's: node1 and node1.cluster are.
func sameHost(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b ||
		a != "" && strings.HasPrefix(b, a+".") || b != "" && strings.HasPrefix(a, b+".")
}

var errLocked = errors.New("this agent has the host lock")

// byLock is the election among the agents on one host: the agent that has the host lock hosts. The
// others try to get the lock while they search for the store.
func byLock(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
	lock := newHostLock(l.config.RuntimeDir, p)
	m, err := findOrLock(ctx, l, p, lock)
	if !errors.Is(err, errLocked) {
		lock.release()
		return m, err
	}
	if m, err = l.hostStore(ctx, p); err != nil {
		lock.release()
		return nil, l.explainPortInUse(ctx, p, err)
	}
	m.unlock = lock.release
	return m, nil
}

// findOrLock searches for the store until it is found or this agent has the lock (errLocked).
func findOrLock(ctx context.Context, l *locator, p *plan, lock *hostLock) (*Meeting, error) {
	if locked, err := lock.try(); err != nil || locked {
		return nil, cmp.Or(err, errLocked)
	}
	searching, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() {
		for searching.Err() == nil {
			pause(searching, lastWait)
			if locked, _ := lock.try(); locked {
				cancel(errLocked)
			}
		}
	})
	return l.findStore(searching, p)
}

// probeTimeout limits the time in which the user of a port must answer.
const probeTimeout = time.Second

// explainPortInUse adds to an error about a port that the user has specified and that is in use,
// which service uses it, if that can be determined.
func (l *locator) explainPortInUse(ctx context.Context, p *plan, err error) error {
	if !p.named || !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	d, dialerErr := l.dialer(p, "")
	if dialerErr != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, _, answer := d.Dial(ctx, netip.AddrPortFrom(p.addrs[0], uint16(p.ports[0])))
	var user string
	service, isService := errors.AsType[gate.ServiceError](answer)
	switch {
	case answer == nil:
		conn.Close() // its agents have a different runtime directory
		user = "a store of this job"
	case errors.Is(answer, gate.ErrOtherShared):
		host, _, _ := ParseStore(l.config.Store) // as in namedStore
		return &RefusedError{DifferentToken: DifferentToken{
			Host: host, Addr: p.addrs[0], Hosting: true, Shared: true,
		}}
	case errors.Is(answer, gate.ErrDifferentJob):
		user = "the store of another job"
	case errors.Is(answer, gate.ErrDifferentToken):
		user = "a store of this job with a different token"
	case isService:
		user = string(service)
	default:
		return err
	}
	return fmt.Errorf("%w (by %s)", err, user)
}
