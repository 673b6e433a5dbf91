package meet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"rdzv/internal/portuser"
	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet/internal/gate"
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
			"--store %s, without a port, chooses a free one", host)
		p.etcdHint = fmt.Sprintf("if an etcd cluster is there, give its URL: --store http://%s "+
			"(or https://...); otherwise omit the port: each job then chooses a free one", c.Store)
	}
	p.hint = fmt.Sprintf("an agent on host %q, or rdzv store there, hosts the store: is it running? "+
		"All nodes must run the same command, or be given the same --job NAME", host)
	p.sources = []source{named(c, []string{host}, 0, p.searched)}
	if port == 0 && !c.hasRank() {
		p.storeHost = host
		p.refusedHint = fmt.Sprintf("host %q answers, but no agent there is of this job: all nodes must "+
			"run the same command with the same --nodes, or be given the same --job NAME", host)
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
		p.onThisHost(c, host, own)
	}
	if mayHost && len(own) > 0 {
		return p, orShared(byClaim), err
	}
	return p, byRank, err
}

// onThisHost completes the plan for the host that --store names, where the store would listen on
// these addresses.
func (p *plan) onThisHost(c *Config, host string, addrs []netip.Addr) {
	if _, notAddr := netip.ParseAddr(host); notAddr != nil {
		addrs = c.findable(addrs)
	}
	p.addrs, p.sources = addrs, []source{fixed(host, 0, addrs, p.searched)}
	if !slices.ContainsFunc(addrs, notLoopback) {
		p.storeHost = ""
	}
}

func notLoopback(a netip.Addr) bool { return !a.IsLoopback() }

var errOwnHost = errors.New("--store names this host")

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
	p.onThisHost(l.config, host, own)
	return orShared(byClaim)(ctx, l, p)
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
	host := &hostClaim{name: fmt.Sprintf("host/%x-%d", p.public, p.ports[0])}
	m, err := findOrClaim(ctx, l, p, host)
	if !errors.Is(err, errClaimed) {
		host.release()
		return m, err
	}
	if m, err = l.hostStore(ctx, p); err != nil {
		host.release()
		return nil, l.explainPortInUse(ctx, p, err)
	}
	m.unclaim = host.release
	return m, nil
}

// findOrClaim searches for the store until it is found or this agent has the claim (errClaimed).
func findOrClaim(
	ctx context.Context, l *locator, p *plan, host *hostClaim,
) (*Meeting, error) {
	if host.try() {
		return nil, errClaimed
	}
	searching, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() {
		for pause(searching, lastWait) {
			if host.try() {
				cancel(errClaimed)
			}
		}
	})
	return l.findStore(searching, p)
}
