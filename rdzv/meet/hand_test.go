package meet

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/secret"
)

// handConfig is an agent started by hand on a host that has only loopback, which carries multicast
// too. The tests of this package each have a port of their own for beacons.
func handConfig(t *testing.T, k, nodes int) Config {
	c := config(t, -1, nodes)
	c.Launcher, c.Nodes, c.Host = "none", nodes, fmt.Sprint("node", k)
	c.PortLo = 20000 + os.Getpid()%5000
	c.PortHi = c.PortLo + 2000
	return c
}

func TestByHand(t *testing.T) {
	const nodes = 5
	meetings, stores := make([]*Meeting, nodes), make([]*fakeStore, nodes)
	var group sync.WaitGroup
	for k := range nodes {
		stores[k] = newFakeStore(t, fmt.Sprint("store ", k))
		group.Go(func() { meetings[k] = mustMeet(t, handConfig(t, k, nodes), stores[k].host) })
	}
	group.Wait()
	host := -1
	for k, m := range meetings {
		if m.Hosting && host >= 0 {
			t.Errorf("nodes %d and %d host", host, k)
		}
		if m.Hosting {
			host = k
		}
	}
	for k, m := range meetings {
		if got := ask(t, m, "x"); got != fmt.Sprintf("store %d x", host) {
			t.Errorf("node %d: %s, but node %d hosts", k, got, host)
		}
	}
	late := mustMeet(t, handConfig(t, nodes, nodes+1), noHost(t)) // a host with members stays the host
	if got := ask(t, late, "x"); got != fmt.Sprintf("store %d x", host) {
		t.Errorf("a late one: %s", got)
	}
}

// Two that both host already, as when a network was parted: the higher id makes way, and finds the
// other then.
func TestTwoHostsByHand(t *testing.T) {
	high, low := twoHosts(t)
	high.Redirect()
	if _, err := high.Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "moved to "+low.Addr.String()) {
		t.Errorf("who comes to the higher one: %v", err)
	}
	next, err := high.Again(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if next.Hosting || next.Addr != low.Addr {
		t.Errorf("it found %v, not %v", next, low)
	}
}

// A host whose job does not move, because its workers are already running, must let its members
// connect again: the job would end if their reconnecting failed.
func TestHostThatStaysAcceptsItsMembers(t *testing.T) {
	high, _ := twoHosts(t)
	if got := ask(t, high, "x"); got != "store x" {
		t.Errorf("a member that connects again got %q", got)
	}
}

// twoHosts returns two agents that both host, once the one with the higher id knows of the other.
func twoHosts(t *testing.T) (high, low *Meeting) {
	t.Helper()
	a, b := handHost(t, 1), handHost(t, 2)
	high, low = a, b
	select {
	case <-a.BetterHost:
	case <-b.BetterHost:
		high, low = b, a
	case <-time.After(10 * time.Second):
		t.Fatal("nobody makes way")
	}
	select {
	case <-low.BetterHost:
		t.Error("both make way")
	default:
	}
	return high, low
}

// handHost is an agent by hand that hosts without having heard of any other.
func handHost(t *testing.T, k int) *Meeting {
	t.Helper()
	m, _ := newHost(t, k)
	return m
}

// newHost is handHost with the candidate that has become the host.
func newHost(t *testing.T, k int) (m *Meeting, c *candidate) {
	t.Helper()
	conf := handConfig(t, k, 4)
	conf.fill()
	p, err := unranked(&conf)
	if err != nil {
		t.Fatal(err)
	}
	m, err = newJoiner(&conf, newFakeStore(t, "store").host).meet(t.Context(), p,
		func(ctx context.Context, j *joiner, p *plan) (*Meeting, error) {
			var err error
			if c, err = newCandidate(ctx, j, p); err != nil {
				return nil, err
			}
			return c.host(ctx)
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, c
}

func TestOtherTokenByHand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	tells := []*heard{newHeard(), newHeard()}
	for k, tell := range tells {
		c := handConfig(t, k, 2)
		c.Notify = tell.notify
		c.Token = func() ([]byte, error) { return []byte(fmt.Sprint("the token of the node ", k)), nil }
		group.Go(func() {
			var none *NotFoundError
			if _, err := Meet(ctx, c, noHost(t)); !errors.As(err, &none) || len(none.Strangers) != 1 || none.Hint == "" {
				t.Errorf("node %d: %v", k, err)
			}
		})
	}
	for k, tell := range tells { // the address is whatever the system takes for loopback multicast
		if n := waitFor[DifferentToken](t, tell); n.Host != fmt.Sprint("node", 1-k) || !n.Addr.IsValid() {
			t.Errorf("%+v", n)
		}
	}
	cancel()
	group.Wait()
}

// Without multicast, the line that the first prints serves the others.
func TestJoinLine(t *testing.T) {
	t.Parallel()
	c := handConfig(t, 0, 2)
	heard := newHeard()
	c.Notify = heard.notify
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { mustMeet(t, c, newFakeStore(t, "first").host) })
	alone := waitFor[Alone](t, heard)
	if !alone.Secret || alone.Store != onLoopback[0] {
		t.Errorf("%t, %s", alone.Secret, alone.Store)
	}
	second := config(t, -1, 2)
	second.Join = strings.TrimPrefix(alone.JoinLine, "RDZV_JOIN=")
	second.Token = func() ([]byte, error) { t.Error("asked for the token"); return nil, errors.New("none") }
	if got := ask(t, mustMeet(t, second, noHost(t)), "x"); got != "first x" {
		t.Error(got)
	}
}

// Where the user has named the store, there is no advice to name it, and without a key no secret to
// hide.
func TestAloneWithStore(t *testing.T) {
	t.Parallel()
	c := storeConfig(t, t.TempDir(), "127.0.0.1")
	c.Insecure = true
	heard := newHeard()
	c.Notify = heard.notify
	m := mustMeet(t, c, newFakeStore(t, "store").host)
	if n := waitFor[Alone](t, heard); n.Store.IsValid() || n.Secret || n.JoinLine != m.JoinLine() {
		t.Errorf("%+v", n)
	}
}

// Rank 0 of a launcher that tells no addresses is found by its beacon.
func TestRankedByBeacon(t *testing.T) {
	conf := func(rank int) Config {
		c := handConfig(t, rank, 2)
		c.Launcher, c.Rank = "pals", rank
		return c
	}
	host := mustMeet(t, conf(0), newFakeStore(t, "store").host)
	c := conf(1)
	c.fill()
	p := mustPlan(t, &c)
	p.sources = nil // the beacons alone
	m, err := newJoiner(&c, noHost(t)).meet(t.Context(), p, byRank)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Addr != host.Addr {
		t.Errorf("found %v, not %v", m, host)
	}
	host.Agreed()
}

// A beacon of a host that is not there, sent again by somebody who has heard it once, moves nobody.
func TestOldBeaconMovesNobody(t *testing.T) {
	m, host := newHost(t, 1)
	c := *host
	c.callers = newCallers(c.plan.multicast, c.joiner.strangers, m.Addrs)
	c.callers.becomeHost()
	old := beacon.Beacon{Hosting: true, Public: c.plan.multicast.public, ID: strings.Repeat("0", 32), Host: "old", Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}}
	c.callers.hear(beacon.Packet{Data: old.Encode(c.plan.multicast.key), From: onLoopback[0]})
	if addr, ok := c.proved(t.Context(), <-c.callers.rivals); ok {
		t.Errorf("%s is taken for a host", addr)
	}
	mine := old
	mine.Addrs = m.Addrs // this very store under another id
	if addr, ok := c.proved(t.Context(), mine); ok {
		t.Errorf("its own address %s is taken for another host", addr)
	}
}

// Two nodes with one token and two lines are told so, but not before both have been alone for a
// while.
func TestOtherLineByHand(t *testing.T) {
	heard := newHeard()
	conf := handConfig(t, 1, 2)
	conf.fill()
	p, err := unranked(&conf)
	if err != nil {
		t.Fatal(err)
	}
	c := newCallers(p.multicast, &strangers{notify: heard.notify}, nil)
	other := beacon.Beacon{Public: hex.EncodeToString(secret.PublicName("another line")), ID: beacon.NewID(), Host: "node2", Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}}
	c.hear(beacon.Packet{Data: other.Encode(p.multicast.key), From: onLoopback[0]})
	if now := heard.all(); len(now) != 0 {
		t.Errorf("reported at once: %+v", now)
	}
	c.start = c.start.Add(-otherLineAfter)
	c.hear(beacon.Packet{Data: other.Encode(p.multicast.key), From: onLoopback[0]})
	if n := waitFor[DifferentCommand](t, heard); n != (DifferentCommand{"node2", onLoopback[0]}) {
		t.Errorf("%+v", n)
	}
}
