package meet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"rdzv/internal/procfs"
)

// sharedConfig is that of an agent or a shared store in a range of ports of this test's own.
func sharedConfig(t *testing.T, lo int) Config {
	c := config(t, -1, 2)
	c.Store, c.PortLo, c.PortHi, c.LocalSize = "localhost", lo, lo+99, -1
	c.Proc = procfs.System
	return c
}

// startShared runs a shared store, whose protocol is that of fakeStore.
func startShared(t *testing.T, c Config, listen, name string) (*SharedGate, *fakeStore) {
	t.Helper()
	g, err := ListenShared(t.Context(), c, listen)
	if err != nil {
		t.Fatal(err)
	}
	f := newFakeStore(t, name)
	f.host(t.Context(), g)
	return g, f
}

// Agents of several jobs find it, with and without its port, on its host and on others.
func TestSharedStore(t *testing.T) {
	c := sharedConfig(t, 21000)
	g, _ := startShared(t, c, "localhost", "shared")
	for _, test := range []struct{ job, store, dir string }{
		{"a", "localhost", t.TempDir()}, {"b", "localhost", t.TempDir()},
		{"a", g.Addrs[0].String(), t.TempDir()},
		{"c", "localhost", ""}, // as on another host: this agent does not host
	} {
		c.Job, c.Store, c.RuntimeDir = test.job, test.store, test.dir
		m := mustMeet(t, c, noHost(t))
		if !m.Shared || m.Hosting || m.Addr != g.Addrs[0] {
			t.Errorf("%+v: %v, shared %t", test, m, m.Shared)
		}
		for range 2 { // the connection of Meet, and a new one
			if got := ask(t, m, "x"); got != "shared x" {
				t.Errorf("%+v: got %q", test, got)
			}
		}
	}
}

// Without a shared store an agent on the host that --store names hosts the job's own, and agents
// that know of shared stores find that.
func TestNoSharedStore(t *testing.T) {
	c := sharedConfig(t, 21100)
	own := newFakeStore(t, "own")
	if m := mustMeet(t, c, own.host); !m.Hosting || m.Shared {
		t.Errorf("%v, shared %t", m, m.Shared)
	}
	m := mustMeet(t, c, noHost(t))
	if got := ask(t, m, "x"); got != "own x" || m.Shared {
		t.Errorf("got %q, shared %t", got, m.Shared)
	}
}

// Agents that have lost a shared store wait until it runs again, and do not host one.
func TestSharedStoreIsRestarted(t *testing.T) {
	c := sharedConfig(t, 21200)
	g, first := startShared(t, c, "localhost", "first")
	m := mustMeet(t, c, noHost(t))
	first.stop()
	searching := make(chan Notice, 100)
	m.config.NextReport = func(last time.Duration) time.Duration { return last + 10*time.Millisecond }
	m.config.Notify = func(n Notice) {
		select {
		case searching <- n:
		default:
		}
	}
	var next *Meeting
	var err error
	var group sync.WaitGroup
	group.Go(func() { next, err = m.Again(t.Context()) })
	if n := (<-searching).(Searching); !strings.Contains(n.Hint, "start rdzv store there again") {
		t.Errorf("%v, hint %q", n, n.Hint)
	}
	again, _ := startShared(t, c, "localhost", "second")
	group.Wait()
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if got := ask(t, next, "x"); got != "second x" || again.Addrs[0] != g.Addrs[0] {
		t.Errorf("got %q at %v", got, again.Addrs)
	}
}

// A shared store of another user does not keep one of this user from its host, and agents find
// theirs. At a port that is given, agents are refused.
func TestSharedStoresOfTwoUsers(t *testing.T) {
	mine, other := sharedConfig(t, 21300), sharedConfig(t, 21300)
	other.Token = func() ([]byte, error) { return []byte("another token, 24 bytes."), nil }
	theirs, _ := startShared(t, other, "localhost", "theirs")
	g, _ := startShared(t, mine, "localhost", "mine")
	mine.Notify = func(n Notice) { t.Errorf("notice %v", n) }
	if got := ask(t, mustMeet(t, mine, noHost(t)), "x"); got != "mine x" {
		t.Errorf("got %q", got)
	}
	refused := make(chan Notice, 10)
	mine.Store, mine.RuntimeDir, mine.refusedTimeout = theirs.Addrs[0].String(), "", time.Millisecond
	mine.Notify = func(n Notice) { refused <- n }
	_, err := Meet(t.Context(), mine, noHost(t))
	if _, is := errors.AsType[*RefusedError](err); !is {
		t.Errorf("%v, want a RefusedError", err)
	}
	if n, is := (<-refused).(DifferentToken); !is || !n.Hosting {
		t.Errorf("notice %v, want a different token", n)
	}

	for listen, want := range map[string]string{
		"localhost":              "address already in use (by a shared store of yours)",
		g.Addrs[0].String():      "address already in use (by a shared store of yours)",
		theirs.Addrs[0].String(): "address already in use (by a shared store with a different token)",
		"192.0.2.1":              `cannot listen on "192.0.2.1": this host does not have that address`,
		"192.0.2.1:port":         `cannot listen on "192.0.2.1:port": not HOST, :PORT or HOST:PORT`,
		":" + otherService(t):    "address already in use" + byThisProcess(),
	} {
		if _, err := ListenShared(t.Context(), mine, listen); err == nil ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", listen, err, want)
		}
	}
}

// otherService is the port of a service that closes every connection.
func otherService(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	})
	t.Cleanup(func() { l.Close(); group.Wait() })
	return strings.TrimPrefix(l.Addr().String(), "127.0.0.1:")
}

// The store reports agents with another token, and not those that search for a job's own store.
func TestSharedStoreReports(t *testing.T) {
	c := sharedConfig(t, 21400)
	reported := make(chan Notice, 10)
	c.Notify = func(n Notice) { reported <- n }
	g, _ := startShared(t, c, "localhost", "shared")
	c.Notify = nil
	mustMeet(t, c, noHost(t))
	c.Token = func() ([]byte, error) { return []byte("another token, 24 bytes."), nil }
	c.Store, c.RuntimeDir = g.Addrs[0].String(), ""
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { _, _ = Meet(ctx, c, noHost(t)) })
	n := <-reported
	cancel()
	group.Wait()
	if got, is := n.(DifferentToken); !is || got.Addr != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
		t.Errorf("notice %v, want a different token", n)
	}
}
