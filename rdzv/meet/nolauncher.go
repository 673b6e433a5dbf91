package meet

import (
	"context"
	"errors"
	"sync"
	"time"
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

// peerTimeout limits the time for a TCP connection on the local network. It is short because the
// address may be one of a recorded beacon.
const peerTimeout = 250 * time.Millisecond

// byBeacon is the election among the agents of a local network that know nothing about each other.
//
// Each agent listens, sends beacons ("seeking"), and connects to the agent that hosts, else to
// those that are before it in the order of ranks (see before). The agent for which all others wait
// hosts, so rank 0's if all are there; after restTimeout one for which more than half of the job
// waits, or one whose RDZV_JOIN another agent has. So two parts of a job that cannot hear each
// other do not both host, and a host remains the host.
func byBeacon(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
	e, err := newBeaconElection(ctx, l, p)
	if err != nil {
		return nil, err
	}
	m, err := e.run(ctx)
	if err != nil {
		e.peers.socket.Close()
	}
	if err != nil || m != e.own {
		e.own.release()
	}
	return m, err
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
		l.config.Notify(NoMulticast{Err: err, Text: err.Error()})
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
		found, err = e.find(searching)
	})
	group.Go(func() {
		reportNoPeerYet(searching, e.locator.config, e.own, e.locator.rejections, e.peers)
	})
	group.Go(func() { e.reportDisappeared(searching) })
	if e.waitElected(searching, done) {
		cancel(errElected)
		if <-done; err != nil {
			return e.own, e.host(ctx)
		}
	}
	<-done
	return found, err
}

// find finds the store that another agent hosts, and then announces it.
func (e *beaconElection) find(ctx context.Context) (*Meeting, error) {
	p := *e.plan
	p.sources, p.peers = []source{e.peers.candidates}, e.peers
	d, err := e.locator.dialer(&p, e.own.id.String())
	if err != nil {
		return nil, err
	}
	d.ConnectTimeout = peerTimeout
	s := e.locator.newSearch(&p, d)
	m, err := e.locator.find(ctx, s)
	if err != nil {
		return nil, err
	}
	m.dialer = e.own.dialer // a member has no id when it connects again
	e.peers.setFound(m, s.targets[m.Addr].name)
	m.tasks.run(e.announce)
	return m, nil
}

// announce sends and receives beacons until ctx ends.
func (e *beaconElection) announce(ctx context.Context) {
	defer e.peers.socket.Close()
	e.peers.announce(ctx)
}

// waitElected waits until this agent has to host. It returns false if the agent has found a host
// before, or ctx has ended.
func (e *beaconElection) waitElected(ctx context.Context, found <-chan struct{}) bool {
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
		if e.peers.elect(e.own.gate.Clients(), e.locator.config.Size) {
			return true
		}
	}
}

// host starts the store, and continues to send beacons until all agents have joined.
func (e *beaconElection) host(ctx context.Context) error {
	e.peers.setHosting()
	e.own.tasks.run(e.announce)
	if err := e.locator.serve(ctx, e.own, e.plan); err != nil {
		return err
	}
	e.own.tasks.run(e.reportDisappeared)
	return nil
}

// reportDisappeared reports the agents that have ended before they joined, until ctx ends.
func (e *beaconElection) reportDisappeared(ctx context.Context) {
	for pause(ctx, time.Second) {
		for _, d := range e.peers.disappeared(e.own.gate.Clients()) {
			e.locator.config.Notify(d)
		}
	}
}
