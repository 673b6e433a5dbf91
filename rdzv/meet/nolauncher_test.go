package meet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// An agent that has been elected is heard while its store starts: one that starts meanwhile waits
// for it and does not host, whichever is before the other.
func TestAgentStartsWhileStoreStarts(t *testing.T) {
	for _, host := range []int{1, 3} { // of the second agent
		t.Run(fmt.Sprint("node", host), func(t *testing.T) {
			starting, start, store := make(chan struct{}), make(chan struct{}), newFakeStore(t, "store")
			first := newElection(t, 2, func(ctx context.Context, l net.Listener) error {
				close(starting)
				<-start
				return store.host(ctx, l)
			})
			var group sync.WaitGroup
			defer group.Wait()
			group.Go(func() {
				if err := first.host(t.Context()); err != nil {
					t.Error(err)
				}
			})
			<-starting
			second := newElection(t, host, noHost(t))
			group.Go(func() {
				m, err := second.run(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if m.release(); m.Addr != first.own.Addr {
					t.Errorf("found %v, want %v", m, first.own)
				}
			})
			for pause(t.Context(), firstWait) {
				if slices.ContainsFunc(first.own.gate.Clients(), func(c gate.Client) bool {
					return c.ID == second.own.id.String()
				}) {
					break
				}
			}
			close(start)
		})
	}
}

// Agents meet although one of them, or two, do not receive the beacons of another one: those of the
// third tell them about it.
func TestPartialMulticast(t *testing.T) {
	t.Parallel()
	for from := range 3 {
		for to := range 3 {
			for _, mutually := range []bool{false, true} {
				if from == to || mutually && from > to {
					continue
				}
				t.Run(fmt.Sprint(from, " to ", to, " ", mutually), func(t *testing.T) {
					t.Parallel()
					meetDeaf(t, 3, func(sender, receiver int) bool {
						return sender == from && receiver == to ||
							mutually && sender == to && receiver == from
					})
				})
			}
		}
	}
}

// The agents of two networks that are connected later do not host two stores: each half waits for
// more than half of the job.
func TestTwoHalves(t *testing.T) {
	t.Parallel()
	apart := time.Now().Add(restTimeout + time.Second)
	meetDeaf(t, 4, func(sender, receiver int) bool {
		return sender/2 != receiver/2 && time.Now().Before(apart)
	})
}

// meetDeaf lets agents meet of which some do not receive the beacons of others. One must host.
func meetDeaf(t *testing.T, agents int, deaf func(sender, receiver int) bool) {
	t.Helper()
	all, stores := make([]*beaconElection, agents), make([]*fakeStore, agents)
	for k := range all {
		stores[k] = newFakeStore(t, "store")
		all[k] = newElection(t, k, stores[k].host)
		all[k].peers.socket.Close()
		all[k].peers.socket = &beacon.Socket{}
		all[k].locator.config.Size = agents
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var sending, meeting sync.WaitGroup
	sending.Go(func() {
		for pause(ctx, firstWait) {
			for i, sender := range all {
				for j, receiver := range all {
					for _, data := range sender.peers.packets() {
						if i != j && !deaf(i, j) {
							receiver.peers.receive(beacon.Packet{Data: data, From: loopbackAddrs[0]})
						}
					}
				}
			}
		}
	})
	found := make([]*Meeting, agents)
	for k, e := range all {
		meeting.Go(func() {
			var err error
			if found[k], err = e.run(ctx); err != nil {
				t.Errorf("agent %d: %v", k, err)
			}
		})
	}
	meeting.Wait()
	cancel()
	sending.Wait()
	hosts := 0
	for k, m := range found {
		if m == nil {
			continue
		}
		if m == all[k].own {
			hosts++
		}
		defer m.release()
	}
	if hosts != 1 && !t.Failed() {
		t.Errorf("%d agents host", hosts)
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

// connect connects to an agent as another one with that id.
func connect(ctx context.Context, e *beaconElection, host, id string) (net.Conn, error) {
	d, err := gate.NewDialer(e.plan.key, e.plan.public, host, id)
	if err != nil {
		return nil, err
	}
	conn, _, err := d.Dial(ctx, e.own.Addr)
	return conn, err
}

// A recorded beacon of a host that no longer exists, or one with which the agent's own address has
// been announced under another id, does not keep an agent from finding the host.
func TestReplayedBeacon(t *testing.T) {
	first := newElection(t, 1, newFakeStore(t, "store").host)
	if err := first.host(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := newElection(t, 2, noHost(t))
	signer := e.plan.multicast
	old := beacon.Beacon{
		Hosting: true, Public: signer.public, ID: strings.Repeat("0", 96), Host: "old",
		Addrs: append([]netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}, e.own.Addrs...),
	}
	packet := beacon.Packet{Data: old.Encode(signer.key), From: loopbackAddrs[0]}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		for ctx.Err() == nil {
			e.peers.receive(packet)
			pause(ctx, 100*time.Microsecond)
		}
	})
	m, err := e.run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if m.release(); m.Addr != first.own.Addr {
		t.Errorf("found %v, want %v", m, first.own)
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
