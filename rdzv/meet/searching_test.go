package meet

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A line about a search has what the user can act on, and stays short.
func TestSearchingText(t *testing.T) {
	answers := func(name string, err error, addrs ...string) (list []Answer) {
		for _, a := range addrs {
			list = append(list, Answer{Name: name, Addr: netip.MustParseAddrPort(a), Err: err})
		}
		return list
	}
	refused := answers("node1", syscall.ECONNREFUSED, "10.0.0.5:29621", "10.0.0.5:29700",
		"10.0.0.5:29702")
	silent := answers("10.0.0.6", &net.DNSError{IsTimeout: true}, "10.0.0.6:29600")
	for want, s := range map[string]Searching{
		`"nod1" does not resolve`: {Unresolved: []string{"nod1"}},
		`"nod1" does not resolve; the resolver has not answered for "node2"`: {
			Unresolved: []string{"nod1", "node2"}, Unanswered: []string{"node2"},
		},
		"no store at node1 10.0.0.5 (3 ports tried): connection refused": {Tried: refused},
		`"nod1" does not resolve; no store at 10.0.0.6 port 29600: no answer`: {
			Unresolved: []string{"nod1"}, Tried: silent,
		},
		`"a" does not resolve; "b" does not resolve; "c" does not resolve; and 2 more`: {
			Unresolved: []string{"a", "b", "c", "d"}, Tried: silent,
		},
		"no other agent has connected, and no multicast beacon was received": {Multicast: true},
		"no other agent has connected, but a multicast beacon of node2 (10.0.0.6) was received": {
			Multicast: true, Heard: "node2 (10.0.0.6)",
		},
		"no other agent has connected, but a multicast beacon of node2 (10.0.0.6) was received, " +
			"the last one 5s ago": {
			Multicast: true, Heard: "node2 (10.0.0.6)", HeardAgo: 5 * time.Second,
		},
		"waiting for more agents with those of a, b":               {Connected: []string{"a", "b"}, Tried: silent},
		"waiting for more agents with those of a, b, c and 1 more": {Connected: []string{"a", "b", "c", "d"}},
		"no address of the store is known yet":                     {},
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A host that refuses all connections answers: then it is the job that is missing there.
func TestHintOfRefusedConnections(t *testing.T) {
	c := storeConfig(t, "node2")
	p, _, err := namedStore(t.Context(), &c)
	if err != nil {
		t.Fatal(err)
	}
	refused, silent := Answer{Err: syscall.ECONNREFUSED}, Answer{Err: &net.DNSError{IsTimeout: true}}
	for want, list := range map[string][]Answer{
		p.refusedHint: {refused, refused}, p.hint: {refused, silent},
	} {
		if got := p.hintFor(Searching{Tried: list}); got != want || got == "" {
			t.Errorf("%v: hint %q, want %q", list, got, want)
		}
	}
}

// An agent whose --store does not resolve says so, and finds the store when it does.
func TestSearchingForNameThatDoesNotResolve(t *testing.T) {
	reported := newNotices()
	var known atomic.Bool
	var group sync.WaitGroup
	defer group.Wait()
	host := storeConfig(t, "127.0.0.1")
	c := storeConfig(t, "nod1")
	c.Notify = reported.add
	c.NextReport = func(last time.Duration) time.Duration { return last + 100*time.Millisecond }
	c.Interfaces = func() ([]Interface, error) { return nil, nil } // nod1 is another host
	c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		if known.Load() {
			return loopbackAddrs[:1], nil
		}
		return nil, &net.DNSError{IsNotFound: true}
	}
	group.Go(func() { mustMeet(t, c, noHost(t)) })
	for {
		n := waitFor[Searching](t, reported)
		if len(n.Unresolved) == 1 {
			if want := `"nod1" does not resolve`; n.String() != want || n.Hint == "" {
				t.Errorf("reported %q with hint %q, want %q", n, n.Hint, want)
			}
			break
		}
		reported.clear()
	}
	mustMeet(t, host, newFakeStore(t, "store").host)
	known.Store(true)
}

// An agent says at once that the resolver does not answer for the name in --store, and how long it
// has waited.
func TestSearchingWithoutResolver(t *testing.T) {
	reported := newNotices()
	c := storeConfig(t, "nod1")
	c.Notify = reported.add
	c.NextReport = func(last time.Duration) time.Duration { return last + 100*time.Millisecond }
	c.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, &net.DNSError{IsTimeout: true}
	}
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { Meet(ctx, c, noHost(t)) })
	n := waitFor[Searching](t, reported)
	const want = `the resolver has not answered for "nod1"`
	if n.String() != want || !strings.Contains(n.Hint, "/etc/resolv.conf") {
		t.Errorf("reported %q with hint %q, want %q", n, n.Hint, want)
	}
	if took := time.Since(began); n.Waited > took || took > 3*time.Second {
		t.Errorf("reported after %v that it has waited for %v", took, n.Waited)
	}
}

// A name in --store that resolves only after a while may be that of the agent's own host, which
// then hosts.
func TestNameOfThisHostResolvesLate(t *testing.T) {
	var asked atomic.Int32
	c := storeConfig(t, "alias")
	c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		if asked.Add(1) == 1 {
			return nil, &net.DNSError{IsNotFound: true}
		}
		return loopbackAddrs[:1], nil
	}
	if m := mustMeet(t, c, newFakeStore(t, "store").host); !m.Hosting {
		t.Errorf("%v, want a store on this host", m)
	}
}

// An agent without a launcher says whether it has received a beacon of another agent.
func TestSearchingByMulticast(t *testing.T) {
	reported := newNotices()
	c := noLauncherConfig(t, 1, 2)
	c.Notify = reported.add
	c.NextReport = func(last time.Duration) time.Duration { return last + 100*time.Millisecond }
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { mustMeet(t, c, newFakeStore(t, "first").host) })
	if n := waitFor[Searching](t, reported); !n.Multicast || n.Heard != "" || n.Tried != nil {
		t.Errorf("reported %+v, want a search by multicast that has received nothing", n)
	}
	if n := waitFor[NoPeerYet](t, reported); !n.NoBeacon {
		t.Errorf("reported %+v, want NoBeacon", n)
	}
	mustMeet(t, noLauncherConfig(t, 2, 2), newFakeStore(t, "second").host)
}
