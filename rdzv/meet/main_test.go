package meet

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fakeStore stands for the store: it answers each line with its name and the line.
type fakeStore struct {
	name    string
	mu      sync.Mutex
	l       net.Listener
	all     []net.Conn
	stopped bool
	done    sync.WaitGroup
}

func (f *fakeStore) host(_ context.Context, l net.Listener) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.l = l
	f.done.Go(f.serve)
	return nil
}

func (f *fakeStore) serve() {
	for {
		conn, err := f.l.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.all = append(f.all, conn)
		if f.stopped {
			conn.Close()
		}
		f.mu.Unlock()
		f.done.Go(func() {
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				conn.Write([]byte(f.name + " " + lines.Text() + "\n"))
			}
		})
	}
}

// stop closes the listener and all connections, as the end of the store's process would.
func (f *fakeStore) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	if f.l != nil {
		f.l.Close()
	}
	for _, c := range f.all {
		c.Close()
	}
}

func (f *fakeStore) close() {
	f.stop()
	f.done.Wait()
}

func newFakeStore(t *testing.T, name string) *fakeStore {
	f := &fakeStore{name: name}
	t.Cleanup(f.close)
	return f
}

// ask sends a line on a new connection of the meeting and returns the answer.
func ask(t *testing.T, m *Meeting, line string) string {
	t.Helper()
	conn, err := m.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	conn.Write([]byte(line + "\n"))
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(answer)
}

// notices collects what an agent reports.
type notices struct {
	mu   sync.Mutex
	list []Notice
	more chan struct{}
}

func newNotices() *notices { return &notices{more: make(chan struct{}, 100)} }

func (ns *notices) add(n Notice) {
	ns.mu.Lock()
	ns.list = append(ns.list, n)
	ns.mu.Unlock()
	ns.more <- struct{}{}
}

func (ns *notices) clear() {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.list = nil
}

func (ns *notices) all() []Notice {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	return slices.Clone(ns.list)
}

// waitFor returns the first notice of type N.
func waitFor[N Notice](t *testing.T, ns *notices) N {
	t.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	for {
		for _, n := range ns.all() {
			if n, ok := n.(N); ok {
				return n
			}
		}
		select {
		case <-ns.more:
		case <-limit.C:
			var none N
			t.Fatalf("no %T was reported, but %+v", none, ns.all())
		}
	}
}

var testToken = []byte("0123456789abcdef0123456789abcdef")

// config is the configuration of an agent on a host that has only loopback. The job has the name of
// the test, so that tests use different ports.
func config(t *testing.T, rank, size int) Config {
	return Config{
		Rank: rank, Size: size, LocalSize: -1, Nodes: -1, NodeRank: -1, Job: t.Name(),
		Host:       "node" + string(rune('1'+max(rank, 0))),
		Token:      func() ([]byte, error) { return testToken, nil },
		Env:        map[string]string{},
		RuntimeDir: t.TempDir(),
		Interfaces: func() ([]Interface, error) {
			return []Interface{{
				Name: "lo", Index: 1, Up: true, Loopback: true,
				Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")},
			}}, nil
		},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{IsNotFound: true}
		},
	}
}

func mustMeet(t *testing.T, c Config, host HostFunc) *Meeting {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := Meet(ctx, c, host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// tokenNotNeeded is the Token of an agent whose key is not derived from the token.
func tokenNotNeeded(t *testing.T) func() ([]byte, error) {
	return func() ([]byte, error) {
		t.Error("Token was called")
		return nil, errors.New("none")
	}
}

// noHost is the HostFunc of an agent that must not host.
func noHost(t *testing.T) HostFunc {
	return func(context.Context, net.Listener) error {
		t.Error("HostFunc was called")
		return net.ErrClosed
	}
}
