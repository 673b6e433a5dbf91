package meet

import (
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

	"rdzv/internal/portuser"
	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/meet/internal/hostclaim"
)

// namedStore is the plan for --store HOST[:PORT]. An agent on that host hosts; if there are
// several, the one that has claimed it.
func namedStore(ctx context.Context, c *Config) (*plan, election, error) {
	host, port, err := ParseStore(c.Store)
	if err != nil {
		return nil, nil, err
	}
	p, err := planByToken(c)
	if err != nil {
		return nil, nil, err
	}
	p.hosting, p.searched = false, p.ports
	if p.shared != nil {
		p.searched = append(slices.Clip(p.ports), sharedPorts(c)...)
	}
	if port != 0 {
		p.ports, p.searched, p.named = []int{port}, []int{port}, true
		p.otherServiceHint = fmt.Sprintf("another service uses that port: "+
			"Config.Store %s, without a port, chooses a free one", host)
		p.etcdHint = fmt.Sprintf("if an etcd cluster is there, give its URL: Config.Etcd.URLs http://%s "+
			"(or https://...); otherwise omit the port: each job then chooses a free one", c.Store)
	}
	p.hint = fmt.Sprintf("an agent on host %q, or rdzv store there, hosts the store: is it running? "+
		"All nodes must run the same command, or be given the same Config.Job NAME", host)
	p.sources = []source{named(c, []string{host}, 0, p.searched)}
	if port == 0 && !c.hasRank() {
		p.storeHost = host
		p.refusedHint = fmt.Sprintf("host %q answers, but no agent there is of this job: all nodes must "+
			"run the same command with the same Config.Nodes, or be given the same Config.Job NAME", host)
	}
	mayHost := c.RuntimeDir != ""
	if mustResolve(c, host) {
		p.addrs = nil
		if mayHost {
			return p, byName, nil
		}
		return p, byRank, nil
	}
	own, err := ownStoreAddrs(ctx, c, host)
	if p.addrs = nil; err == nil && len(own) > 0 {
		p.onThisHost(host, own)
	}
	if mayHost && len(own) > 0 {
		return p, orShared(byClaim), err
	}
	return p, byRank, err
}

// onThisHost completes the plan for the host that --store names, where the store would listen on
// these addresses.
func (p *plan) onThisHost(host string, addrs []netip.Addr) {
	p.addrs, p.sources = addrs, []source{fixed(host, 0, addrs, p.searched)}
	if !slices.ContainsFunc(addrs, notLoopback) {
		p.storeHost = ""
	}
}

func notLoopback(a netip.Addr) bool { return !a.IsLoopback() }

var errOwnHost = errors.New("Config.Store names this host")

// byName is the election if the name of --store must be resolved before this agent knows whether it
// is that of its own host, which may take until the name exists. Meanwhile it searches.
func byName(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
	searching, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var own []netip.Addr
	named := p.sources[0]
	p.sources = []source{func(ctx context.Context, add func(candidate)) {
		named(ctx, func(c candidate) {
			addrs, _ := l.config.ownAddrs([]netip.Addr{c.addr.Addr()})
			if own = append(own, addrs...); len(addrs) == 0 {
				add(c)
			} else {
				cancel(errOwnHost)
			}
		})
	}}
	m, err := l.findStore(searching, p)
	if !errors.Is(err, errOwnHost) {
		return m, err
	}
	if own, err = hostAddrs(l.config, own); err != nil {
		return nil, err
	}
	host, _, _ := ParseStore(l.config.Store) // as in namedStore
	p.onThisHost(host, own)
	return orShared(byClaim)(ctx, l, p)
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

// mustResolve tells whether only a resolver knows if a host is this one.
func mustResolve(c *Config, host string) bool {
	_, notAddr := netip.ParseAddr(host)
	return notAddr != nil && host != "localhost" && !sameHost(host, c.Host)
}

// Resolvers may take many seconds to fail. A host recognises its own name without one, so it waits
// only briefly for further addresses.
const (
	resolveTimeout = 5 * time.Second
	ownNameTimeout = 500 * time.Millisecond
)

// ownStoreAddrs returns the addresses on which a store on this host listens if host is its name or
// address; none if host is another host. If host is an address, only that one is used. A name means
// all addresses of this host, because it may resolve to an address that others cannot use: Debian
// maps a host's own name to 127.0.1.1.
func ownStoreAddrs(ctx context.Context, c *Config, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return c.ownAddrs([]netip.Addr{a})
	}
	if host == "localhost" {
		return loopbackAddrs[:1], nil
	}
	limit := ownNameTimeout
	if mustResolve(c, host) {
		limit = resolveTimeout
	}
	resolveCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	named, _ := c.Resolve(resolveCtx, host) // an unknown name is another host's
	own, err := c.ownAddrs(named)
	if err != nil || len(own) == 0 && mustResolve(c, host) {
		return nil, err
	}
	return hostAddrs(c, own)
}

// hostAddrs returns the addresses on which a store on this host listens if the host was named, with
// the addresses to which the name resolves. The first one, in RDZV_JOIN, is that of the default
// route.
func hostAddrs(c *Config, own []netip.Addr) ([]netip.Addr, error) {
	all, err := c.listenAddrs()
	for _, a := range own {
		if !a.IsLoopback() && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all, err
}

// sameHost reports whether two names may be the same host's: node1 and node1.cluster are.
func sameHost(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b ||
		a != "" && strings.HasPrefix(b, a+".") || b != "" && strings.HasPrefix(a, b+".")
}

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
	inUse := &PortInUseError{Err: err}
	if p.maybeEtcd(answer) {
		inUse.Advice = p.etcdHint
	}
	service, isService := errors.AsType[gate.ServiceError](answer)
	version, isVersion := errors.AsType[*protocol.VersionError](answer)
	switch {
	case answer == nil:
		conn.Close() // that of another user with the same token, who has the claim of this host
		inUse.User = "a store of this job"
	case errors.Is(answer, gate.ErrOtherShared), isVersion && version.Shared:
		host, _, _ := ParseStore(l.config.Store) // as in namedStore
		return &RefusedError{By: noticeOf(gate.Rejection{
			Host: host, Addr: p.addrs[0], Reason: answer, Hosting: true,
		})}
	case errors.Is(answer, gate.ErrDifferentJob):
		inUse.User = "the store of another job"
	case isVersion:
		inUse.User = "a store of this job, which " + version.Error()
	case errors.Is(answer, gate.ErrDifferentToken):
		inUse.User = "a store of this job with a different token"
	case isService:
		inUse.User = string(service)
	default:
		inUse.User = portuser.All(l.config.Proc, p.ports)
	}
	return inUse
}

var errClaimed = errors.New("this agent has claimed the host")

// byClaim is the election among the agents on the host that --store names, whatever their runtime
// directories are: the agent that has claimed the host hosts. The others search for the store, and
// try to claim the host meanwhile, because the agent that has the claim may end.
func byClaim(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
	host := &hostclaim.Claim{Name: fmt.Sprintf("host/%x-%d", p.public, p.ports[0])}
	m, err := findOrClaim(ctx, l, p, host)
	if !errors.Is(err, errClaimed) {
		host.Release()
		return m, err
	}
	if m, err = l.hostStore(ctx, p); err != nil {
		host.Release()
		return nil, l.explainPortInUse(ctx, p, err)
	}
	m.unclaim = host.Release
	return m, nil
}

// findOrClaim searches for the store until it is found or this agent has the claim (errClaimed).
func findOrClaim(
	ctx context.Context, l *locator, p *plan, host *hostclaim.Claim,
) (*Meeting, error) {
	if host.Try() {
		return nil, errClaimed
	}
	searching, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() {
		for pause(searching, lastWait) {
			if host.Try() {
				cancel(errClaimed)
			}
		}
	})
	return l.findStore(searching, p)
}
