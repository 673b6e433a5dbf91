package meet

import (
	"context"
	"errors"
	"sync"
	"time"

	"rdzv/rdzv/meet/internal/gate"
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
	// betterTimeout is how long an agent that is connected to a better one, which may be frozen,
	// lets clients wait before it hosts.
	betterTimeout = 1500 * time.Millisecond
	// rank0Timeout is how long an agent waits for rank 0's, without which the job cannot start, to
	// host. After that it hosts and can say who is missing. It is shorter than noPeerAfter.
	rank0Timeout = 2 * time.Second
	// peerTimeout limits the time for a TCP connection on the local network. It is short because
	// the address may be one of a recorded beacon.
	peerTimeout = 250 * time.Millisecond
	// redirectTime is how long an agent redirects others after it has found the host: they may
	// still use its last beacon.
	redirectTime = 3 * time.Second
)

// byBeacon is the election among the agents of a local network that know nothing about each other.
//
// The ids of the agents are in the order of their node ranks, or else of the names of their hosts,
// as their ranks will be (see gate.OrderOf), so that rank 0's agent hosts if it is there.
//
// Each agent listens, sends beacons ("seeking"), and connects to better agents: to a host, else to
// agents with a lower id. An agent to which others have connected, and that is not connected to a
// better one, hosts and admits them. An agent that has found the host redirects the others there.
// So if all start at once, the agent with the lowest id hosts; and a host remains the host if an
// agent with a lower id starts later.
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
	ps := newPeers(p.multicast, l.rejections, m)
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
		found, err = e.find(searching, e.own.id.String(), e.locator.config.NextReport)
	})
	group.Go(func() {
		reportNoPeerYet(searching, e.locator.config, e.own, e.locator.rejections,
			e.peers.lastHeard)
	})
	group.Go(func() { e.reportDisappeared(searching) })
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
		pause(ctx, redirectTime)
		e.own.release()
	})
	return found, nil
}

// find finds the store of a better agent. id tells the agents to which it connects what they are to
// this one, see peers.electionState.
func (e *beaconElection) find(
	ctx context.Context, id string, nextReport func(time.Duration) time.Duration,
) (*Meeting, error) {
	p := *e.plan
	p.sources, p.peers = []source{e.peers.candidates}, e.peers
	d, err := e.locator.dialer(&p, id)
	if err != nil {
		return nil, err
	}
	d.ConnectTimeout = peerTimeout
	s := e.locator.newSearch(&p, d)
	s.nextReport = nextReport
	m, err := e.locator.find(ctx, s)
	if err == nil {
		m.dialer = e.own.dialer // a member has no id when it connects again
	}
	return m, err
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
		s := e.peers.electionState(e.own.gate.Clients())
		waited := time.Since(waitingSince)
		switch {
		case !s.clients:
			waitingSince = time.Time{}
		case waitingSince.IsZero():
			waitingSince = time.Now()
		case time.Since(start) < electionDelay:
		case s.better && waited < betterTimeout:
		case s.verifying && waited < verifyLimit:
		case e.missesRank0() && waited < rank0Timeout:
		default:
			return true
		}
	}
}

// missesRank0 tells whether rank 0's agent may be one that has not been heard, and must come.
func (e *beaconElection) missesRank0() bool {
	c := e.locator.config
	switch {
	case !c.AllNeeded || c.NodeRank == 0:
		return false
	case c.NodeRank > 0: // it would be better than this agent
		return true
	}
	return e.peers.count() < c.Size
}

// host starts the store, and continues to send and receive beacons, also while the store starts: an
// agent that starts meanwhile, and heard nothing of this one, would host too.
func (e *beaconElection) host(ctx context.Context) (*Meeting, error) {
	e.peers.setHosting()
	e.own.tasks.run(func(ctx context.Context) {
		defer e.peers.socket.Close()
		e.peers.announce(ctx)
	})
	if err := e.locator.serve(ctx, e.own, e.plan); err != nil {
		return nil, err
	}
	e.own.tasks.run(e.watchOtherHosts)
	e.own.tasks.run(e.reportDisappeared)
	return e.own, nil
}

// reportDisappeared reports the agents that have ended before they joined, until ctx ends.
func (e *beaconElection) reportDisappeared(ctx context.Context) {
	for pause(ctx, time.Second) {
		e.peers.electionState(e.own.gate.Clients())
		for _, d := range e.peers.disappeared() {
			e.locator.config.Notify(d)
		}
	}
}

// hostID is the id with which a host connects to others: it is better than every agent that does
// not host, and does not wait for them.
var hostID = gate.Instance{}.String()

// watchOtherHosts waits for a better host and closes BetterHost. The agent decides whether the job
// moves there.
func (e *beaconElection) watchOtherHosts(ctx context.Context) {
	if better, err := e.find(ctx, hostID, nil); err == nil {
		better.release()
		e.own.betterAddr = better.Addr
		close(e.own.betterHost)
	}
}
