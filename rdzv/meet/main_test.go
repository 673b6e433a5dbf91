package meet

import (
	"bufio"
	"context"
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

// A fakeStore stands for the store: it answers each line with its name and the line, until the test
// ends.
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

// stop ends the store and its connections, as the death of its process would.
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

// ask sends a line over a new connection of the meeting and gives the answer.
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

// heard collects what an agent reports.
type heard struct {
	mu   sync.Mutex
	list []Notice
	more chan struct{}
}

func newHeard() *heard { return &heard{more: make(chan struct{}, 100)} }

func (h *heard) notify(n Notice) {
	h.mu.Lock()
	h.list = append(h.list, n)
	h.mu.Unlock()
	h.more <- struct{}{}
}

func (h *heard) all() []Notice {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// waitFor returns the first notice of the type.
func waitFor[N Notice](t *testing.T, h *heard) N {
	t.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	for {
		for _, n := range h.all() {
			if n, ok := n.(N); ok {
				return n
			}
		}
		select {
		case <-h.more:
		case <-limit.C:
			var none N
			t.Fatalf("no %T was reported, only %+v", none, h.all())
		}
	}
}

var testToken = []byte("0123456789abcdef0123456789abcdef")

// config is an agent on a host that has nothing but loopback; job names the test, so that no two
// tests share ports.
func config(t *testing.T, rank, size int) Config {
	return Config{
		Rank: rank, Size: size, LocalSize: -1, Nodes: -1, Job: t.Name(), Host: "node" + string(rune('1'+max(rank, 0))),
		Token:      func() ([]byte, error) { return testToken, nil },
		Env:        map[string]string{},
		RuntimeDir: t.TempDir(),
		Interfaces: func() ([]Interface, error) {
			return []Interface{{Name: "lo", Index: 1, Up: true, Loopback: true, Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}}, nil
		},
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, &net.DNSError{IsNotFound: true} },
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

func noHost(t *testing.T) HostFunc {
	return func(context.Context, net.Listener) error {
		t.Error("an agent hosts that should not")
		return net.ErrClosed
	}
}
