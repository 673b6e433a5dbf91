package store

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"rdzv/rdzv/presence"
)

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(within(t), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// By default a single member of etcd answers 0.1 to 1 s after its start, when its election timer
// fires. This one is made the leader at once, by a message of raft that etcd does not document for
// this purpose. If an upgrade of etcd breaks it, rdzv works, but each start takes longer.
func TestStartDoesNotWaitForElectionTimeout(t *testing.T) {
	const bound = 90 * time.Millisecond // about 10 ms on an idle machine
	best := time.Hour
	for range 20 { // on a busy machine few starts are that fast, with an election timer none is
		began := time.Now()
		s := start(t, t.TempDir())
		if _, err := s.Client().Put(within(t), "key", "value"); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(began))
		stop(t, s)
		if best <= bound {
			return
		}
	}
	t.Errorf("fastest answer after %v, want at most %v", best, bound)
}

func TestNoListenerAndNothingLeft(t *testing.T) {
	dir := t.TempDir()
	before, listening := descriptors(t), listeners(t)
	s := start(t, dir)
	if now := listeners(t); !slices.Equal(now, listening) {
		t.Errorf("listening sockets %v, before the start %v", now, listening)
	}
	stop(t, s)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
	if after := descriptors(t); !slices.Equal(after, before) {
		t.Errorf("open descriptors %v, before the start %v", after, before)
	}
}

// descriptors returns the open files and sockets of this process.
func descriptors(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	var open []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(target, "/proc/") {
			open = append(open, target)
		}
	}
	slices.Sort(open)
	return open
}

// listeners returns the listening sockets of this process.
func listeners(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, table := range []struct {
		path         string
		state, inode int    // columns
		listening    string // state
	}{
		{"/proc/net/tcp", 3, 9, "0A"}, {"/proc/net/tcp6", 3, 9, "0A"},
		{"/proc/net/unix", 3, 6, "00010000"},
	} {
		b, err := os.ReadFile(table.path)
		must(t, err)
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > table.inode &&
				f[table.state] == table.listening {
				all = append(all, "socket:["+f[table.inode]+"]")
			}
		}
	}
	ours := descriptors(t)
	foreign := func(socket string) bool { return !slices.Contains(ours, socket) }
	return slices.DeleteFunc(all, foreign)
}

func TestListeners(t *testing.T) {
	before := len(listeners(t))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	if now := len(listeners(t)); now != before+1 {
		t.Errorf("%d listeners, want %d", now, before+1)
	}
}

// serve makes a store serve on loopback and returns its address.
func serve(t *testing.T, s *Server) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.Serve(l, func(string, *presence.Loss) {})
	return l.Addr().String()
}

// ordinaryClient returns etcd's own client, as etcdctl uses it.
func ordinaryClient(t *testing.T, address string) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Endpoints: []string{"http://" + address}, Logger: zap.NewNop()}
	client, err := clientv3.New(config)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func TestOrdinaryClient(t *testing.T) {
	s := start(t, t.TempDir())
	defer stop(t, s)
	client := ordinaryClient(t, serve(t, s))
	if _, err := client.Put(within(t), "key", "value"); err != nil {
		t.Fatal(err)
	}
	answer, err := s.Client().Get(within(t), "key")
	if err != nil || len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != "value" {
		t.Errorf("Get returned %v, %v; want value", answer, err)
	}
}

func TestDrain(t *testing.T) {
	s := start(t, t.TempDir())
	defer stop(t, s)
	if err := s.Drain(within(t)); err != nil {
		t.Errorf("Drain without agents: %v", err)
	}
	a, err := presence.Open(within(t), ordinaryClient(t, serve(t, s)).ActiveConnection(), "a", func() {})
	must(t, err)
	why := errors.New("cancelled by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := s.Drain(ctx); err != why {
		t.Errorf("Drain with a connected agent: %v, want %v", err, why)
	}
	a.Leave(within(t))
	if err := s.Drain(within(t)); err != nil {
		t.Errorf("Drain after the agent left: %v", err)
	}
}

// etcd's own Close waits 5 s for open watches.
func TestCloseDoesNotWaitForClients(t *testing.T) {
	s := start(t, t.TempDir())
	client := ordinaryClient(t, serve(t, s))
	watching, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := client.Watch(watching, "key", clientv3.WithCreatedNotify())
	<-events
	own := s.Client().Watch(watching, "key", clientv3.WithCreatedNotify())
	<-own
	lost := make(chan struct{})
	a, err := presence.Open(within(t), client.ActiveConnection(), "a", func() { close(lost) })
	must(t, err)
	defer a.Abandon()
	began := time.Now()
	stop(t, s)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("Close took %v, want less than 4s", took)
	}
	select {
	case <-lost:
	case <-within(t).Done():
		t.Error("the agent did not detect the loss of the store")
	}
	for range own { // ends with the store's own client
	}
}

func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	why := errors.New("cancelled by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for name, test := range map[string]struct {
		ctx  context.Context
		c    Config
		want string
	}{
		"short timeout": {
			t.Context(), Config{Dir: dir, PeerTimeout: time.Second}, "the minimum is 3s",
		},
		"no directory": {
			t.Context(), Config{Dir: dir + "/none"},
			`cannot create the store's directory in "` + dir + `/none"`,
		},
		"context ended": {ctx, Config{Dir: dir}, why.Error()},
	} {
		s, err := Start(test.ctx, test.c)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: store %v, error %v; want %q", name, s, err, test.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// A connection may have 100 streams at a time, each with headers of 16 KiB, so that a member of the
// job cannot use the memory of the agent that hosts its store. A server says so in its first frame.
func TestLimitsOfConnections(t *testing.T) {
	s := start(t, t.TempDir())
	defer stop(t, s)
	conn, err := net.Dial("tcp", serve(t, s))
	must(t, err)
	defer conn.Close()
	deadline, _ := within(t).Deadline()
	must(t, conn.SetDeadline(deadline))
	// The preface of HTTP/2 (RFC 9113) and an empty frame SETTINGS.
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	must(t, err)
	head := make([]byte, 9)
	_, err = io.ReadFull(conn, head)
	must(t, err)
	body := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(conn, body)
	must(t, err)
	settings := map[uint16]uint32{}
	for ; len(body) >= 6; body = body[6:] {
		settings[binary.BigEndian.Uint16(body)] = binary.BigEndian.Uint32(body[2:])
	}
	const settingsFrame, maxConcurrentStreams, maxHeaderListSize = 4, 3, 6
	if head[3] != settingsFrame || settings[maxConcurrentStreams] != 100 ||
		settings[maxHeaderListSize] != 16<<10 {
		t.Errorf("frame %d with settings %v", head[3], settings)
	}
}
