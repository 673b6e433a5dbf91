package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/presence"
	"rdzv/rdzv/store"
)

// patience is how long a test waits for what must happen. It is never a
// measure.
const patience = 30 * time.Second

// job is a store with a leader, and agents on connections of their own.
type job struct {
	t       *testing.T
	ctx     context.Context
	store   *store.Server
	address string
	led     chan error // what Leader.Run returned

	peerTimeout time.Duration

	mu     sync.Mutex
	wires  map[string][]net.Conn // by agent
	dead   map[string]bool       // agents that can connect no more
	frozen *sync.Map             // agents whose connections pass nothing on
	close  func()
}

// start runs a job's store and leader.
func start(t *testing.T, c LeaderConfig) *job {
	t.Helper()
	return startWith(t, c, presence.DefaultTimeout)
}

// startWith is start with another limit to silence.
func startWith(t *testing.T, c LeaderConfig, peerTimeout time.Duration) *job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s, err := store.Start(ctx, store.Config{Dir: t.TempDir(), PeerTimeout: peerTimeout})
	if err != nil {
		t.Fatal(err)
	}
	j := &job{t: t, ctx: ctx, store: s, peerTimeout: peerTimeout, led: make(chan error, 1), wires: map[string][]net.Conn{}, dead: map[string]bool{}, frozen: new(sync.Map)}
	j.close = sync.OnceFunc(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	t.Cleanup(j.close)
	c.Job, c.Lost = cmp.Or(c.Job, "test"), s.Lost()
	l, err := NewLeader(ctx, s.Client(), c)
	if err != nil {
		t.Fatal(err)
	}
	var leading sync.WaitGroup
	leading.Go(func() { j.led <- l.Run(ctx) })
	t.Cleanup(func() { cancel(); leading.Wait() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	j.address = listener.Addr().String()
	s.Serve(listener)
	return j
}

// client connects an agent; its connections can be cut.
func (j *job) client(id string) *clientv3.Client {
	j.t.Helper()
	client, err := Dial(func(ctx context.Context) (net.Conn, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.dead[id] {
			return nil, errors.New("dead")
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", j.address)
		if err == nil {
			j.wires[id] = append(j.wires[id], conn)
		}
		return freezing{conn, j.frozen, id}, err
	}, j.peerTimeout)
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { client.Close() })
	return client
}

// reset breaks an agent's connection; it may make another.
func (j *job) reset(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, wire := range j.wires[id] {
		wire.(*net.TCPConn).SetLinger(0)
		wire.Close()
	}
}

// kill breaks an agent's connection for good, as its death would.
func (j *job) kill(id string) {
	j.mu.Lock()
	j.dead[id] = true
	j.mu.Unlock()
	j.reset(id)
}

// freeze lets an agent's connections stand, and pass nothing on.
func (j *job) freeze(id string) { j.frozen.Store(id, true) }

// freezing is a connection whose host may be unplugged.
type freezing struct {
	net.Conn
	frozen *sync.Map // agents that are
	id     string
}

func (f freezing) Read(b []byte) (int, error) {
	for {
		n, err := f.Conn.Read(b)
		if _, frozen := f.frozen.Load(f.id); err != nil || !frozen {
			return n, err
		}
	}
}

func (f freezing) Write(b []byte) (int, error) {
	if _, frozen := f.frozen.Load(f.id); frozen {
		return len(b), nil // into the socket's buffer
	}
	return f.Conn.Write(b)
}

func member(i int) Member {
	return Member{ID: fmt.Sprintf("agent-%d", i), Host: fmt.Sprintf("node%d", i), PID: 1000 + i, Rank: Unknown, LocalRank: Unknown, LocalSize: Unknown, NodeRank: Unknown, Slots: 1}
}

// join lets an agent in; agent 0 is in the store's process.
func (j *job) join(m Member) *Session {
	j.t.Helper()
	client := j.store.Client()
	if !m.Hosting {
		client = j.client(m.ID)
	}
	return j.joinBy(client, m)
}

func (j *job) joinBy(client *clientv3.Client, m Member) *Session {
	j.t.Helper()
	return j.joinWith(client, Config{Job: "test", Self: m})
}

// joinUntil lets an agent in that waits for the others until the deadline.
func (j *job) joinUntil(deadline time.Time, m Member) *Session {
	j.t.Helper()
	return j.joinWith(j.client(m.ID), Config{Job: "test", Self: m, JoinBy: deadline})
}

func (j *job) joinWith(client *clientv3.Client, c Config) *Session {
	j.t.Helper()
	s, err := Join(j.ctx, client, c)
	if err != nil {
		j.t.Fatalf("%s: %v", c.Self.ID, err)
	}
	j.t.Cleanup(func() { // for tests that end early; a second call does nothing
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Leave(ctx)
	})
	return s
}

// agents lets n agents in, of which the first hosts the store.
func (j *job) agents(n int) []*Session {
	j.t.Helper()
	sessions := make([]*Session, n)
	for i := range sessions {
		m := member(i)
		m.Hosting = i == 0
		sessions[i] = j.join(m)
	}
	return sessions
}

// each does something with every session at once.
func each(sessions []*Session, do func(int, *Session)) {
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() { do(i, s) })
	}
	all.Wait()
}

// worlds returns what all agents know of the world.
func (j *job) worlds(sessions []*Session) []World {
	j.t.Helper()
	worlds := make([]World, len(sessions))
	each(sessions, func(i int, s *Session) {
		w, err := s.World(j.ctx)
		if err != nil {
			j.t.Errorf("agent %d: %v", i, err)
		}
		worlds[i] = w
	})
	return worlds
}

// ended waits for the end of an agent's job and returns its cause.
func (j *job) ended(s *Session) error {
	j.t.Helper()
	select {
	case <-s.Context().Done():
		return context.Cause(s.Context())
	case <-j.ctx.Done():
		j.t.Fatalf("the job of %s did not end", s.config.Self.ID)
		return nil
	}
}

func (j *job) settle(s *Session, workers ...Worker) {
	j.t.Helper()
	if err := s.Settle(j.ctx, workers); err != nil {
		j.t.Errorf("%s: %v", s.config.Self.ID, err)
	}
}

// leave returns what the agent knew when it left.
func (j *job) leave(s *Session) Summary {
	j.t.Helper()
	sum, err := s.Leave(j.ctx)
	if err != nil {
		j.t.Errorf("%s: %v", s.config.Self.ID, err)
	}
	return sum
}

// finish settles all agents, each with its worker as it ended, and lets them leave.
func (j *job) finish(sessions []*Session, worker func(i int) Worker) []Summary {
	j.t.Helper()
	sums := make([]Summary, len(sessions))
	each(sessions, func(i int, s *Session) {
		j.settle(s, worker(i))
		sums[i] = j.leave(s)
	})
	return sums
}

func succeeded(i int) Worker { return Worker{Rank: i, PID: 2000 + i} }

func stopped(i int) Worker { return Worker{Rank: i, PID: 2000 + i, Signal: 15, Stopped: true} }
