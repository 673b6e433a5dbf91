package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/presence"
	"rdzv/rdzv/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout is how long a test waits for an event that must happen.
const testTimeout = 60 * time.Second

// job is a store, with a leader if an agent hosts it, and agents on connections of their own.
type job struct {
	t       *testing.T
	ctx     context.Context
	config  LeaderConfig
	store   *store.Server    // nil if no agent hosts the store
	etcd    *embed.Etcd      // which knows nothing of rdzv; nil if an agent hosts the store
	admin   *clientv3.Client // of the store
	address string
	run     keys.Run   // of the agent that joined last
	led     chan error // what Leader.Run returned, if an agent hosts the store

	peerTimeout time.Duration

	bytes atomic.Int64 // that the agents have sent and received

	mu     sync.Mutex
	conns  map[string][]net.Conn // by agent
	dead   map[string]bool       // agents that cannot connect any more
	frozen *sync.Map             // agents whose connections deliver nothing
	close  func()
}

func newJob(t *testing.T, c LeaderConfig, peerTimeout time.Duration) *job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return &job{
		t: t, ctx: ctx, config: c, peerTimeout: peerTimeout, led: make(chan error, 1),
		conns: map[string][]net.Conn{}, dead: map[string]bool{}, frozen: new(sync.Map),
	}
}

// starter starts a job of such a leader.
type starter func(*testing.T, LeaderConfig) *job

// inEachStore tests jobs in both kinds of stores.
func inEachStore(t *testing.T, test func(*testing.T, starter)) {
	t.Parallel()
	for name, start := range map[string]starter{
		"hosted": start, "leased": startLeased,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, start) })
	}
}

// start runs a job's store and leader.
func start(t *testing.T, c LeaderConfig) *job {
	t.Helper()
	return startWith(t, c, presence.DefaultTimeout)
}

// startWith is start with another peer timeout.
func startWith(t *testing.T, c LeaderConfig, peerTimeout time.Duration) *job {
	t.Helper()
	j := newJob(t, c, peerTimeout)
	s, err := store.Start(j.ctx, store.Config{Dir: t.TempDir(), PeerTimeout: peerTimeout})
	if err != nil {
		t.Fatal(err)
	}
	j.store, j.admin = s, s.Client()
	j.close = sync.OnceFunc(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	t.Cleanup(j.close)
	c.Job = cmp.Or(c.Job, "test")
	l, err := NewLeader(j.ctx, s.Client(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(j.ctx)
	var leading sync.WaitGroup
	leading.Go(func() {
		j.led <- l.Run(ctx)
		cancel() // as in package agent: nobody reads any more which agents have left
	})
	t.Cleanup(func() { cancel(); leading.Wait() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	j.address = listener.Addr().String()
	s.Serve(listener, func(id string, loss *presence.Loss) {
		if err := l.AgentEnded(ctx, id, loss); err != nil && ctx.Err() == nil {
			t.Logf("agent %s has left: %v", id, err)
		}
	})
	return j
}

// client returns a client for an agent whose connections the test can break.
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
			j.conns[id] = append(j.conns[id], conn)
		}
		return freezable{conn, j, id}, err
	}, j.peerTimeout)
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { client.Close() })
	return client
}

// reset resets an agent's connections; the agent can connect again.
func (j *job) reset(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, conn := range j.conns[id] {
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}

// kill ends an agent's connections for good, as if the agent and all its workers had died.
func (j *job) kill(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.dead[id] = true
	for _, conn := range j.conns[id] {
		conn.(*net.TCPConn).CloseWrite()
		conn.Close()
	}
}

// freeze makes an agent's connections deliver nothing, without closing them.
func (j *job) freeze(id string) { j.frozen.Store(id, true) }

// freezable is an agent's connection, which can be frozen.
type freezable struct {
	net.Conn
	job *job
	id  string // of the agent
}

func (f freezable) NetConn() net.Conn { return f.Conn }

func (f freezable) Read(b []byte) (int, error) {
	for {
		n, err := f.Conn.Read(b)
		f.job.bytes.Add(int64(n))
		if _, frozen := f.job.frozen.Load(f.id); err != nil || !frozen {
			return n, err
		}
	}
}

func (f freezable) Write(b []byte) (int, error) {
	if _, frozen := f.job.frozen.Load(f.id); frozen {
		return len(b), nil // as into a socket buffer that nobody reads
	}
	f.job.bytes.Add(int64(len(b)))
	return f.Conn.Write(b)
}

func member(i int) Member {
	return Member{
		ID: fmt.Sprintf("agent-%d", i), Host: fmt.Sprintf("node%d", i), PID: 1000 + i,
		Tasks: Unplaced(1), LocalSize: Unknown, NodeRank: Unknown,
	}
}

// ranked is a task of a launcher that runs one worker.
func ranked(rank, local int) []Task {
	return []Task{{Rank: rank, LocalRank: local, Slots: 1}}
}

// oneRank is the seat of an agent that runs one worker.
func oneRank(rank int) Seat { return Seat{Tasks: []SeatTask{{Rank: rank, Slots: 1}}} }

// agent is the configuration of an agent. Where no agent hosts the store, it can lead the job.
func (j *job) agent(m Member) Config {
	c := Config{Job: "test", Self: m}
	if j.etcd != nil {
		c.Self.Hosting, c.Lead = false, new(j.config)
		c.PeerTimeout, c.jobTTL = presence.MinTimeout, 3*presence.MinTimeout
	}
	return c
}

// join joins an agent; the one that hosts the store uses the store's own client.
func (j *job) join(m Member) *Session {
	j.t.Helper()
	return j.enter(j.agent(m))
}

func (j *job) enter(c Config) *Session {
	j.t.Helper()
	if c.Self.Hosting {
		return j.joinWith(j.admin, c)
	}
	return j.joinWith(j.client(c.Self.ID), c)
}

// joinUntil joins an agent that waits for the others until a deadline.
func (j *job) joinUntil(deadline time.Time, m Member) *Session {
	j.t.Helper()
	c := j.agent(m)
	c.JoinBy = deadline
	return j.joinWith(j.client(m.ID), c)
}

func (j *job) joinWith(client *clientv3.Client, c Config) *Session {
	j.t.Helper()
	s, err := Join(j.ctx, client, c)
	if err != nil {
		j.t.Fatalf("%s: %v", c.Self.ID, err)
	}
	j.run = s.registration.Run.Keys
	held, err := s.Hold()
	if err != nil {
		j.t.Fatalf("%s: %v", c.Self.ID, err)
	}
	if held != nil {
		held.Close() // no process has it but this one
	}
	return j.leavesAtEnd(s)
}

// into returns a LeaderConfig.Notify that delivers all warnings but why an attempt has not started
// yet.
func into(warnings chan<- error) func(Notice) {
	return func(n Notice) {
		w, is := n.(Warning)
		if !is {
			return
		}
		err := w.Err
		if text := err.Error(); !strings.Contains(text, " starts in ") && !strings.Contains(text, " starts when ") {
			warnings <- err
		}
	}
}

// leavesAtEnd makes an agent leave at the end of the test, unless it has left before.
func (j *job) leavesAtEnd(s *Session) *Session {
	j.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Leave(ctx)
	})
	return s
}

// agents joins n agents, of which the first hosts the store.
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

// wantLed checks that the leader has ended without an error.
func (j *job) wantLed() {
	j.t.Helper()
	if j.store == nil {
		return
	}
	if err := <-j.led; err != nil {
		j.t.Errorf("the leader: %v", err)
	}
}

// each calls do for all sessions concurrently.
func each(sessions []*Session, do func(int, *Session)) {
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() { do(i, s) })
	}
	all.Wait()
}

// worlds returns the world of each agent.
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

// ended waits until a session's context ends and returns the cause.
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

// leave returns the agent's summary.
func (j *job) leave(s *Session) Summary {
	j.t.Helper()
	sum, err := s.Leave(j.ctx)
	if err != nil {
		j.t.Errorf("%s: %v", s.config.Self.ID, err)
	}
	if sum.Verdict == nil {
		sum.Verdict = new(Verdict) // which no test wants, so that the others go on
	}
	return sum
}

// finish settles all agents, each with one worker, and makes them leave.
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
