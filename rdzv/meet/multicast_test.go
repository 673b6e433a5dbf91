package meet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/secret"
)

// process tells this test process from others on the host, which may use the same multicast port.
var process = rand.Text()

// noLauncherConfig is the configuration of an agent without a launcher on a host that has only
// loopback, which supports multicast too. All agents on the same port receive its beacons, and take
// notice of them if they have the same token or job: both are different for each test.
func noLauncherConfig(t *testing.T, k, nodes int) Config {
	c := config(t, -1, nodes)
	c.Launcher, c.Nodes, c.Host = "none", nodes, fmt.Sprint("node", k)
	c.Job += " " + process
	token := []byte("token of " + c.Job)
	c.Token = func() ([]byte, error) { return token, nil }
	c.PortLo = 20000 + os.Getpid()%5000
	c.PortHi = c.PortLo + 2000
	return c
}

func TestNoLauncher(t *testing.T) {
	const nodes = 5
	meetings, stores := make([]*Meeting, nodes), make([]*fakeStore, nodes)
	var group sync.WaitGroup
	for k := range nodes {
		stores[k] = newFakeStore(t, fmt.Sprint("store ", k))
		group.Go(func() {
			meetings[k] = mustMeet(t, noLauncherConfig(t, k, nodes), stores[k].host)
		})
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
			t.Errorf("node %d is connected to %q, but node %d hosts", k, got, host)
		}
	}
	// A host with members remains the host whatever the id of an agent that starts later.
	late := mustMeet(t, noLauncherConfig(t, nodes, nodes+1), noHost(t))
	if got := ask(t, late, "x"); got != fmt.Sprintf("store %d x", host) {
		t.Errorf("an agent that started later is connected to %q, but node %d hosts", got, host)
	}
}

func TestDifferentTokenWithoutLauncher(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	reports := []*notices{newNotices(), newNotices()}
	for k, reported := range reports {
		c := noLauncherConfig(t, k, 2)
		c.Notify = reported.add
		c.Token = func() ([]byte, error) { return fmt.Append(nil, "the token of node ", k), nil }
		group.Go(func() {
			_, err := Meet(ctx, c, noHost(t))
			var none *NotFoundError
			if !errors.As(err, &none) || len(none.Rejections) != 1 {
				t.Errorf("node %d: %v", k, err)
			}
		})
	}
	for k, reported := range reports { // the system chooses the address of loopback multicast
		n := waitFor[DifferentToken](t, reported)
		if n.Host != fmt.Sprint("node", 1-k) || !n.Addr.IsValid() {
			t.Errorf("node %d reported %+v", k, n)
		}
	}
	cancel()
	group.Wait()
}

// Without multicast, another node can join with the line that the first one reports.
func TestJoinLine(t *testing.T) {
	t.Parallel()
	c := noLauncherConfig(t, 0, 2)
	reported := newNotices()
	c.Notify = reported.add
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { mustMeet(t, c, newFakeStore(t, "first").host) })
	alone := waitFor[NoPeerYet](t, reported)
	if !alone.Secret || alone.Store != loopbackAddrs[0] {
		t.Errorf("NoPeerYet has Secret %t, Store %s", alone.Secret, alone.Store)
	}
	second := config(t, -1, 2)
	second.Join = strings.TrimPrefix(alone.JoinLine, "RDZV_JOIN=")
	second.Token = tokenNotNeeded(t)
	if got := ask(t, mustMeet(t, second, noHost(t)), "x"); got != "first x" {
		t.Errorf("the second node is connected to %q", got)
	}
}

// RDZV_JOIN takes precedence over --store, also if the name in it resolves to another address of the
// same host; it is refused if the two name different stores.
func TestJoinLineWithStore(t *testing.T) {
	host := mustMeet(t, storeConfig(t, "127.0.0.1"), newFakeStore(t, "first").host)
	second := storeConfig(t, "")
	second.Join, second.Token = strings.TrimPrefix(host.JoinLine(), "RDZV_JOIN="), tokenNotNeeded(t)
	second.Interfaces = func() ([]Interface, error) { return nil, nil }
	names := map[string]string{"store": "127.0.0.1", "other": "192.0.2.1"}
	second.Resolve = func(_ context.Context, name string) ([]netip.Addr, error) {
		if addr := names[name]; addr != "" {
			return []netip.Addr{netip.MustParseAddr(addr)}, nil
		}
		return nil, &net.DNSError{IsNotFound: true}
	}
	same := []string{"127.0.0.1", host.Addr.String(), "store", "unknown", second.Host}
	for _, second.Store = range same {
		if m := mustMeet(t, second, noHost(t)); m.Addr != host.Addr {
			t.Errorf("--store %s: connected to %v, want %v", second.Store, m.Addr, host.Addr)
		}
	}
	for _, second.Store = range []string{"127.0.0.1:1", "192.0.2.1", "other"} {
		_, err := Meet(t.Context(), second, noHost(t))
		if _, is := errors.AsType[*OtherStoreError](err); !is {
			t.Errorf("--store %s: %v, want an OtherStoreError", second.Store, err)
		}
	}
}

// If the user has specified the store, NoPeerYet does not suggest it; without a key it has no secret.
func TestNoPeerYetWithStore(t *testing.T) {
	t.Parallel()
	c := storeConfig(t, "127.0.0.1")
	c.Insecure = true
	reported := newNotices()
	c.Notify = reported.add
	m := mustMeet(t, c, newFakeStore(t, "store").host)
	n := waitFor[NoPeerYet](t, reported)
	if n.Store.IsValid() || n.Secret || n.JoinLine != m.JoinLine() {
		t.Errorf("reported %+v", n)
	}
}

// Rank 0 under a launcher that provides no addresses is found by its beacon.
func TestRankedByBeacon(t *testing.T) {
	conf := func(rank int) Config {
		c := noLauncherConfig(t, rank, 2)
		c.Launcher, c.Rank = "pals", rank
		return c
	}
	host := mustMeet(t, conf(0), newFakeStore(t, "store").host)
	c := conf(1)
	c.setDefaults()
	p := mustPlan(t, &c)
	p.sources = nil // only beacons
	m, err := newLocator(&c, noHost(t)).meet(t.Context(), p, byRank)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Addr != host.Addr {
		t.Errorf("found %v, want %v", m, host)
	}
	host.Agreed()
}

// With --store HOST, agents with different commands use different ports: the one that searches
// learns of the other from its beacon.
func TestDifferentCommandAtStore(t *testing.T) {
	c := noLauncherConfig(t, 1, 2)
	c.Job += " with a different command"
	c.setDefaults()
	p, err := noLauncher(&c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	store := netip.MustParseAddrPort("10.0.0.5:29600")
	host := &Meeting{Addrs: []netip.AddrPort{store}}
	group.Go(func() { p.multicast.announce(ctx, host) })

	for host, want := range map[string]bool{"node1": true, "10.0.0.5": true, "node3": false, "10.0.0.6": false} {
		b := beacon.Beacon{Host: "node1", Addrs: []netip.AddrPort{store}}
		if isAt(b, host) != want {
			t.Errorf("isAt(%+v, %q) = %t, want %t", b, host, !want, want)
		}
	}
	reported := newNotices()
	searching := noLauncherConfig(t, 2, 2)
	searching.Store, searching.Notify = "node1", reported.add
	group.Go(func() { Meet(ctx, searching, noHost(t)) })
	if n := waitFor[DifferentCommand](t, reported); n.Host != "node1" {
		t.Errorf("reported %+v, want node1", n)
	}
}

// With different --store, agents of one job host a store each, or one searches where none is: each
// that hears the other names it.
func TestDifferentStore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	one, searching := noLauncherConfig(t, 1, 2), noLauncherConfig(t, 3, 2)
	one.setDefaults()
	p, err := noLauncher(&one)
	if err != nil {
		t.Fatal(err)
	}
	store := &Meeting{Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.5:29600")}}
	group.Go(func() { p.multicast.announce(ctx, store) })

	hosting, searches := newNotices(), newNotices()
	two := noLauncherConfig(t, 2, 2)
	two.Notify, two.Store = hosting.add, two.Host
	two.setDefaults()
	other, _, err := namedStore(ctx, &two)
	if err != nil {
		t.Fatal(err)
	}
	other.storeHost = two.Store // although it listens on loopback only
	l := newLocator(&two, newFakeStore(t, "two").host)
	m, err := l.hostStore(ctx, other)
	if err != nil {
		t.Fatal(err)
	}
	defer m.release()
	searching.Notify, searching.Store = searches.add, "192.0.2.1"
	group.Go(func() { Meet(ctx, searching, noHost(t)) })
	for _, ns := range []*notices{hosting, searches} {
		if n := waitFor[DifferentStore](t, ns); n.Host != "node1" && n.Host != "node2" {
			t.Errorf("reported %+v", n)
		}
	}
	if n := waitFor[NoPeerYet](t, hosting); !n.Explained || n.Hint != "" || n.JoinLine != "" {
		t.Errorf("reported %+v, want that it is explained", n)
	}
}

// A name that resolves to an address of the agent that hosts is that of its host.
func TestIsElsewhere(t *testing.T) {
	c := config(t, -1, 2)
	c.Resolve = func(_ context.Context, name string) ([]netip.Addr, error) {
		switch name {
		case "alias":
			return []netip.Addr{netip.MustParseAddr("10.0.0.5")}, nil
		case "node2":
			return []netip.Addr{netip.MustParseAddr("10.0.0.6")}, nil
		}
		return nil, &net.DNSError{IsNotFound: true}
	}
	b := beacon.Beacon{Host: "node1", Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.5:1")}}
	for host, want := range map[string]bool{
		"node1": false, "alias": false, "10.0.0.5": false, "node2": true, "10.0.0.6": true, "late": false,
	} {
		if got := c.isElsewhere(t.Context(), b, host); got != want {
			t.Errorf("isElsewhere(%+v, %q) = %t, want %t", b, host, got, want)
		}
	}
}

// An agent that has named the host of another job's store tells that agent too.
func TestHostIsToldOfDifferentCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	told := newNotices()
	hosting := noLauncherConfig(t, 1, 2)
	hosting.Notify = told.add
	hosting.setDefaults()
	p, err := noLauncher(&hosting)
	if err != nil {
		t.Fatal(err)
	}
	host, err := newLocator(&hosting, noHost(t)).listen(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	defer host.release()
	group.Go(func() { p.multicast.announce(ctx, host) })
	searching := noLauncherConfig(t, 2, 2)
	searching.Store = hosting.Host
	searching.Job += " with a different command"
	group.Go(func() { Meet(ctx, searching, noHost(t)) })
	if n := waitFor[DifferentCommand](t, told); n.Host != searching.Host {
		t.Errorf("the host reported %+v, want %s", n, searching.Host)
	}
}

// An agent that knows of an agent with another command does not say that it has received nothing,
// and does not suggest what does not help then.
func TestNothingContradictsDifferentCommand(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	reported := newNotices()
	for k := range 2 {
		c := noLauncherConfig(t, k, 2)
		c.Job += fmt.Sprint(" with command ", k)
		if k == 0 {
			c.Notify = reported.add
			c.NextReport = func(last time.Duration) time.Duration { return last + noPeerAfter }
		}
		group.Go(func() { Meet(ctx, c, noHost(t)) })
	}
	want := "found no agent of this job, but " + waitFor[DifferentCommand](t, reported).Agent() +
		", which runs a different command or --nodes"
	if n := waitFor[Searching](t, reported); n.String() != want || n.Hint != "" {
		t.Errorf("reported %q with hint %q, want %q", n, n.Hint, want)
	}
	if n := waitFor[NoPeerYet](t, reported); !n.Explained || n.NoBeacon || n.Store.IsValid() || n.JoinLine != "" {
		t.Errorf("reported %+v, want nothing about multicast and other addresses", n)
	}
}

// Two nodes that have the same token and run different commands report that, but only after both
// have been without a host for a while.
func TestDifferentCommandWithoutLauncher(t *testing.T) {
	reported := newNotices()
	c := noLauncherConfig(t, 1, 2)
	c.setDefaults()
	p, err := noLauncher(&c)
	if err != nil {
		t.Fatal(err)
	}
	ps := newPeers(p.multicast, &rejections{notify: reported.add}, &Meeting{})
	other := beacon.Beacon{
		Public: hex.EncodeToString(secret.PublicName("different command")),
		ID:     strings.Repeat("1", 96),
		Host:   "node2", Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")},
	}
	packet := beacon.Packet{Data: other.Encode(p.multicast.key), From: loopbackAddrs[0]}
	ps.receive(packet)
	if list := reported.all(); len(list) != 0 {
		t.Errorf("reported at once: %+v", list)
	}
	ps.start = ps.start.Add(-differentJobAfter)
	ps.receive(packet)
	want := DifferentCommand{"node2", loopbackAddrs[0]}
	if n := waitFor[DifferentCommand](t, reported); n != want {
		t.Errorf("reported %+v, want %+v", n, want)
	}
}
