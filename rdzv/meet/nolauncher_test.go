package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// newHost returns an agent that hosts without an election.
func newHost(t *testing.T, k int) (m *Meeting, e *beaconElection) {
	t.Helper()
	c := noLauncherConfig(t, k, 4)
	c.setDefaults()
	p, err := noLauncher(&c)
	if err != nil {
		t.Fatal(err)
	}
	m, err = newLocator(&c, newFakeStore(t, "store").host).meet(t.Context(), p,
		func(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
			var err error
			if e, err = newBeaconElection(ctx, l, p); err != nil {
				return nil, err
			}
			return e.host(ctx)
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, e
}

// An agent that has been elected is heard while its store starts: one that starts meanwhile waits
// for it and does not host, whichever has the lower id, although a third agent waits for the newer
// one.
func TestAgentStartsWhileStoreStarts(t *testing.T) {
	for _, lower := range []bool{false, true} {
		t.Run(fmt.Sprint("lower=", lower), func(t *testing.T) {
			start, store := make(chan struct{}), newFakeStore(t, "store")
			host := 1 // of the second agent
			if !lower {
				host = 3
			}
			first := newElection(t, 2, func(ctx context.Context, l net.Listener) error {
				<-start
				return store.host(ctx, l)
			})
			second := newElection(t, host, noHost(t))
			if (second.own.id.String() < first.own.id.String()) != lower {
				t.Fatalf("the ids are %s and %s", first.own.id, second.own.id)
			}
			var group sync.WaitGroup
			defer group.Wait()
			group.Go(func() { checkMeeting(t, first.host) })
			group.Go(func() { checkMeeting(t, second.run) })
			awaitElectionState(t, second, electionState{better: true})
			group.Go(func() {
				_, err := connect(t.Context(), second, "node3", strings.Repeat("f", 96))
				if moved, ok := errors.AsType[gate.MovedError](err); !ok ||
					moved.To != first.own.Addr {
					t.Errorf("the third agent: %v, want moved to %v", err, first.own.Addr)
				}
			})
			awaitElectionState(t, second, electionState{better: true, clients: true})
			close(start)
		})
	}
}

// newElection returns an agent that listens and takes part in no election yet.
func newElection(t *testing.T, k int, host HostFunc) *beaconElection {
	t.Helper()
	c := noLauncherConfig(t, k, 4)
	c.setDefaults()
	p, err := noLauncher(&c)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newBeaconElection(t.Context(), newLocator(&c, host), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.peers.socket.Close()
		e.own.release()
	})
	return e
}

// awaitElectionState waits until the agent has connected to others, or they to it, in that way.
func awaitElectionState(t *testing.T, e *beaconElection, want electionState) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var s electionState
	for pause(ctx, firstWait) {
		if s = e.peers.electionState(e.own.gate.Clients()); s == want {
			return
		}
	}
	t.Errorf("the state is %+v, want %+v", s, want)
}

// connect connects to an agent as another one with that id.
func connect(ctx context.Context, e *beaconElection, host, id string) (net.Conn, error) {
	d, err := gate.NewDialer(e.plan.key, e.plan.public, host, id)
	if err != nil {
		return nil, err
	}
	conn, _, err := d.Dial(ctx, e.own.Addr)
	return conn, err
}

func checkMeeting(t *testing.T, meet func(context.Context) (*Meeting, error)) {
	m, err := meet(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(m.release)
}

// Neither a recorded beacon of a host that no longer exists, nor one with which this agent's own
// address has been announced under another id, is taken for a better host; a live one is found
// meanwhile.
func TestReplayedBeacon(t *testing.T) {
	a, electionA := newHost(t, 1)
	b, electionB := newHost(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for _, e := range []*beaconElection{electionA, electionB} {
		signer := e.plan.multicast
		old := beacon.Beacon{
			Hosting: true, Public: signer.public, ID: strings.Repeat("0", 96), Host: "old",
			Addrs: append([]netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}, e.own.Addrs...),
		}
		packet := beacon.Packet{Data: old.Encode(signer.key), From: loopbackAddrs[0]}
		group.Go(func() {
			for ctx.Err() == nil {
				e.peers.receive(packet)
				pause(ctx, 100*time.Microsecond)
			}
		})
	}
	high, low := a, b
	if a.id.String() < b.id.String() {
		high, low = b, a
	}
	select {
	case <-high.BetterHost:
	case <-time.After(10 * time.Second):
		t.Fatal("the host with the higher id has not found the other")
	}
	select {
	case <-low.BetterHost:
		t.Errorf("the host with the lower id has found a better one at %v", low.betterAddr)
	default:
	}
	if high.betterAddr != low.Addr {
		t.Errorf("the better host is at %v, want %v", high.betterAddr, low.Addr)
	}
}

// An agent that was connected and has ended before there was a host is reported, also if this agent
// hosts meanwhile. One that was admitted is not.
func TestDisappeared(t *testing.T) {
	t.Parallel()
	reported := newNotices()
	c := noLauncherConfig(t, 1, 3)
	c.Notify = reported.add
	c.setDefaults()
	p, err := noLauncher(&c)
	if err != nil {
		t.Fatal(err)
	}
	l := newLocator(&c, newFakeStore(t, "store").host)
	e, err := newBeaconElection(t.Context(), l, p)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		if m, err := e.run(t.Context()); err != nil {
			t.Error(err)
		} else {
			t.Cleanup(m.release)
		}
	})
	dying, die := context.WithCancel(t.Context())
	defer die()
	group.Go(func() {
		for dying.Err() == nil {
			e.peers.mu.Lock()
			if len(e.peers.others) > 0 {
				die()
			}
			e.peers.mu.Unlock()
			pause(dying, firstWait)
		}
	})
	if _, err := connect(dying, e, "node2", strings.Repeat("0", 95)+"1"); err == nil {
		t.Fatal("this agent hosts although a better one is connected")
	}
	conn, err := connect(t.Context(), e, "node3", strings.Repeat("f", 96))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	waitFor[Disappeared](t, reported)
	for _, n := range reported.all() {
		d, ok := n.(Disappeared)
		if ok && (d.Host != "node2" || d.Addr != e.own.Addr.Addr() || d.Ago < disappearedAfter) {
			t.Errorf("reported %+v, want node2 only", d)
		}
	}
}
