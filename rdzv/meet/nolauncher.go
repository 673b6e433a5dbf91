package meet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
)

// noLauncher is the plan for agents without a launcher, which have only the token in common.
func noLauncher(c *Config) (*plan, error) {
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.hosting = false
	p.hint = "run the same command on the other nodes; " +
		"if the network has no multicast, give all of them the same --store HOST"
	return p, nil
}

var errElected = errors.New("this agent hosts the store")

const (
	// electionDelay is how long an agent receives beacons before it may host.
	electionDelay = 40 * time.Millisecond
	// betterTimeout is how long an agent that knows a better one, which may be unreachable, lets
	// clients wait before it hosts.
	betterTimeout = 1500 * time.Millisecond
)

// byBeacon is the election among the agents of a local network that know nothing about each other.
//
// Each agent listens, sends beacons ("seeking"), and connects to better agents: to a host, else to
// agents with a lower id. An agent to which others have connected, and that knows no better one,
// hosts and admits them. An agent that has found the host redirects the others there. So if all
// start at once, the agent with the lowest id hosts; and a host remains the host if an agent with a
// lower id starts later.
func byBeacon(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
	e, err := newBeaconElection(ctx, l, p)
	if err != nil {
		return nil, err
	}
	m, err := e.run(ctx)
	if err != nil || !m.Hosting {
		e.peers.socket.Close()
	}
	if err != nil {
		e.own.release()
		return nil, err
	}
	return m, nil
}

type beaconElection struct {
	locator *locator
	plan    *plan
	own     *Meeting // where this agent listens
	peers   *peers
}

func newBeaconElection(ctx context.Context, l *locator, p *plan) (*beaconElection, error) {
	m, err := l.listen(ctx, p)
	if err != nil {
		return nil, err
	}
	ps := newPeers(p.multicast, l.rejections, m.Addrs)
	if socket, err := l.config.openMulticast(ctx); err != nil {
		l.config.Notify(NoMulticast{err})
	} else {
		ps.socket = socket
		ps.socket.Receive(ps.receive)
	}
	return &beaconElection{locator: l, plan: p, own: m, peers: ps}, nil
}

// run returns when this agent hosts or has found the host.
func (e *beaconElection) run(ctx context.Context) (*Meeting, error) {
	searching, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	var found *Meeting
	var err error
	done := make(chan struct{})
	group.Go(func() { e.peers.announce(searching) })
	group.Go(func() {
		defer close(done)
		p := *e.plan
		p.sources, p.heard = []source{e.peers.candidates}, e.peers.lastHeard
		found, err = e.locator.findStore(searching, &p)
	})
	group.Go(func() { reportAlone(searching, e.locator.config, e.own, e.locator.rejections, e.peers.lastHeard) })
	if e.waitElected(searching, done) {
		cancel(errElected)
		<-done
		if err != nil {
			return e.host(ctx)
		}
	}
	<-done
	if err != nil {
		return nil, err
	}
	e.own.gate.Redirect(found.Addr)
	found.tasks.run(func(ctx context.Context) {
		pause(ctx, peerLifetime) // other agents may use this agent's last beacon as long as that
		e.own.release()
	})
	return found, nil
}

// waitElected waits until this agent has to host. It returns false if the agent has found a host
// before, or ctx has ended.
func (e *beaconElection) waitElected(ctx context.Context, found <-chan struct{}) bool {
	start := time.Now()
	var waitingSince time.Time // of clients
	check := time.NewTicker(firstWait)
	defer check.Stop()
	for {
		select {
		case <-found:
			return false
		case <-ctx.Done():
			return false
		case <-check.C:
		}
		switch {
		case !e.own.gate.HasWaiting():
			waitingSince = time.Time{}
		case waitingSince.IsZero():
			waitingSince = time.Now()
		case time.Since(start) < electionDelay:
		case !e.peers.knowsBetter() || time.Since(waitingSince) > betterTimeout:
			return true
		}
	}
}

// host starts the store, and continues to send and receive beacons.
func (e *beaconElection) host(ctx context.Context) (*Meeting, error) {
	e.peers.setHosting()
	if err := e.locator.serve(ctx, e.own, e.plan); err != nil {
		return nil, err
	}
	e.own.tasks.run(func(ctx context.Context) {
		defer e.peers.socket.Close()
		e.peers.announce(ctx)
	})
	e.own.tasks.run(e.watchOtherHosts)
	return e.own, nil
}

// watchOtherHosts waits for a better host and closes BetterHost. The agent decides whether the job
// moves there.
func (e *beaconElection) watchOtherHosts(ctx context.Context) {
	for {
		select {
		case b := <-e.peers.otherHosts:
			if addr, ok := e.verify(ctx, b); ok {
				e.own.betterAddr = addr
				close(e.own.betterHost)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// verify connects to the sender of a beacon, which may be an old beacon that somebody has sent
// again, and returns its address if another store of this job answers.
func (e *beaconElection) verify(ctx context.Context, b beacon.Beacon) (netip.AddrPort, bool) {
	for _, addr := range b.Addrs {
		conn, greeting, err := e.own.dialer.Dial(ctx, addr)
		if err != nil {
			continue
		}
		conn.Close()
		other := greeting.ID != e.own.id && !slices.Contains(e.locator.past, greeting.ID)
		return addr, other
	}
	return netip.AddrPort{}, false
}
