package meet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// handConfig is an agent started by hand on a host that has only loopback, which carries multicast too. The tests of
// this package each have a port of their own for beacons.
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

// Two that both host already, as when a network was parted: the higher id makes way, and finds the other then.
func TestTwoHostsByHand(t *testing.T) {
	a, b := handHost(t, 1), handHost(t, 2)
	high, low := a, b
	select {
	case <-a.Moved:
	case <-b.Moved:
		high, low = b, a
	case <-time.After(10 * time.Second):
		t.Fatal("nobody makes way")
	}
	select {
	case <-low.Moved:
		t.Error("both make way")
	default:
	}
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

// handHost is an agent by hand that hosts without having heard of any other.
func handHost(t *testing.T, k int) *Meeting {
	t.Helper()
	s := &session{Config: handConfig(t, k, 4), host: newFakeStore(t, "store").host, exclude: map[instance]bool{}}
	s.fill()
	p, err := s.hand()
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.bind(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	c := &callers{
		session: s, meeting: m, better: map[string]time.Time{}, voices: map[string]bool{}, offers: make(chan offer, maxOpen),
		self: beacon{public: publicHex(p.public), id: newID(), host: s.Host, addrs: m.Addrs, hosting: true},
	}
	if c.radio, err = s.tune(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.radio.listen(c.hear)
	if _, err := c.host(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func TestOtherTokenByHand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	tells := []*said{newSaid(), newSaid()}
	for k, tell := range tells {
		c := handConfig(t, k, 2)
		c.Say = tell.say
		c.Token = func() ([]byte, error) { return []byte(fmt.Sprint("the token of the node ", k)), nil }
		group.Go(func() {
			var none *NotFoundError
			if _, err := Meet(ctx, c, noHost(t)); !errors.As(err, &none) || len(none.Strangers) != 1 || none.Hint == "" {
				t.Errorf("node %d: %v", k, err)
			}
		})
	}
	for k, tell := range tells { // the address is whatever the system takes for loopback multicast
		if line := tell.wait(t, "holds another token"); !strings.HasPrefix(line, fmt.Sprintf("node%d (", 1-k)) {
			t.Error(line)
		}
	}
	cancel()
	group.Wait()
}

// Without multicast, the line that the first prints serves the others.
func TestJoinLine(t *testing.T) {
	t.Parallel()
	c := handConfig(t, 0, 2)
	said := newSaid()
	c.Say = said.say
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { mustMeet(t, c, newFakeStore(t, "first").host) })
	line := said.wait(t, "RDZV_JOIN=")
	_, join, _ := strings.Cut(line, "RDZV_JOIN=")
	second := config(t, -1, 2)
	second.Join = join
	second.Token = func() ([]byte, error) { t.Error("asked for the token"); return nil, errors.New("none") }
	if got := ask(t, mustMeet(t, second, noHost(t)), "x"); got != "first x" {
		t.Error(got)
	}
	said.wait(t, "hint: or give every node the same --store 127.0.0.1")
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
	s := &session{Config: c, exclude: map[instance]bool{}}
	s.fill()
	p := mustPlan(t, s)
	p.sources = p.sources[len(p.sources)-1:] // the beacons alone
	m, err := s.look(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Addr != host.Addr {
		t.Errorf("found %v, not %v", m, host)
	}
	host.Agreed()
}
