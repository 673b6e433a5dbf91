package lease

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"rdzv/internal/boottime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// ttl is such that the whole seconds that are left show each renewal.
	ttl = 4 * time.Second
	// limit is how long a test waits for an event that must happen.
	limit = 30 * time.Second
)

// store is an etcd, and a client with two connections to it, like those to two members.
type store struct {
	t      *testing.T
	ctx    context.Context
	admin  *clientv3.Client // with connections of its own
	client *clientv3.Client

	mu     sync.Mutex
	silent map[string]bool // members whose connections deliver nothing
}

func start(t *testing.T) *store {
	t.Helper()
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.ListenPeerUrls = nil
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, 100
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	s := &store{t: t, ctx: ctx, silent: map[string]bool{}}
	address := e.Clients[0].Addr().String()
	s.admin = s.connect(address, "admin:1")
	s.client = s.connect(address, "a:1", "b:1")
	return s
}

func (s *store) connect(address string, members ...string) *clientv3.Client {
	s.t.Helper()
	dial := func(ctx context.Context, member string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		return &connection{conn, s, member}, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: members, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(dial)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { client.Close() })
	return client
}

// silence makes members silent, as if they were frozen.
func (s *store) silence(members ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range members {
		s.silent[m] = true
	}
}

func (s *store) isSilent(member string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent[member]
}

type connection struct {
	net.Conn
	store  *store
	member string
}

func (c *connection) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.store.isSilent(c.member) {
			return n, err
		}
	}
}

func (c *connection) Write(b []byte) (int, error) {
	if c.store.isSilent(c.member) {
		return len(b), nil // as into a socket buffer that nobody reads
	}
	return c.Conn.Write(b)
}

// keep grants a lease and keeps it. The channel delivers the result of Keep.
func (s *store) keep(ctx context.Context, silence time.Duration) (clientv3.LeaseID, <-chan error) {
	s.t.Helper()
	granted, err := s.admin.Grant(s.ctx, Seconds(ttl))
	if err != nil {
		s.t.Fatal(err)
	}
	kept := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		kept <- Keep(ctx, s.client, granted.ID, ttl, silence, func(time.Duration) {}, nil)
	})
	s.t.Cleanup(func() { cancel(); keeping.Wait() })
	return granted.ID, kept
}

// renewed waits until the lease was renewed.
func (s *store) renewed(id clientv3.LeaseID) {
	s.t.Helper()
	last := Seconds(ttl)
	for range time.Tick(20 * time.Millisecond) {
		answer, err := s.admin.TimeToLive(s.ctx, id)
		if err != nil || answer.TTL < 0 {
			s.t.Fatalf("the lease was not renewed: %+v, %v", answer, err)
		}
		if answer.TTL > last {
			return
		}
		last = answer.TTL
	}
}

// lives fails the test if the lease expires within a time in which it is renewed several times.
func (s *store) lives(id clientv3.LeaseID) {
	s.t.Helper()
	if _, err := s.admin.Put(s.ctx, "key", "", clientv3.WithLease(id)); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.ctx, 2*ttl)
	defer cancel()
	for response := range s.admin.Watch(ctx, "key", clientv3.WithFilterPut()) {
		if len(response.Events) > 0 {
			s.t.Fatal("the lease has expired")
		}
	}
}

func (s *store) ended(kept <-chan error, want error) {
	s.t.Helper()
	select {
	case err := <-kept:
		if !errors.Is(err, want) {
			s.t.Errorf("%v, want %v", err, want)
		}
	case <-s.ctx.Done():
		s.t.Errorf("Keep has not returned, want %v", want)
	}
}

func TestKeepUntilContextEnds(t *testing.T) {
	s := start(t)
	why := errors.New("no longer needed")
	ctx, cancel := context.WithCancelCause(s.ctx)
	_, kept := s.keep(ctx, limit)
	cancel(why)
	s.ended(kept, why)
}

func TestRevoked(t *testing.T) {
	s := start(t)
	id, kept := s.keep(s.ctx, limit)
	if _, err := s.admin.Revoke(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	s.ended(kept, ErrRevoked)
	for range 2 {
		if err := Restore(s.ctx, s.client, id, ttl); err != nil {
			t.Fatal(err)
		}
	}
	if answer, err := s.admin.TimeToLive(s.ctx, id); err != nil || answer.GrantedTTL != Seconds(ttl) {
		t.Errorf("the lease that was granted again: %+v, %v", answer, err)
	}
}

// A key of the lease is gone.
func TestDoubt(t *testing.T) {
	s := start(t)
	granted, err := s.admin.Grant(s.ctx, Seconds(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	doubts, kept := make(chan struct{}), make(chan error, 1)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	keeping.Go(func() {
		kept <- Keep(s.ctx, s.client, granted.ID, time.Hour, time.Hour,
			func(time.Duration) {}, doubts)
	})
	doubts <- struct{}{}
	s.ended(kept, ErrRevoked)
}

func TestSilent(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, kept := s.keep(s.ctx, ttl)
	s.silence("a:1", "b:1")
	s.ended(kept, ErrSilent)
}

// One member becomes silent without closing its connections. It is sometimes the one that the agent
// asks for renewals, therefore the test has both cases.
func TestSilentMember(t *testing.T) {
	for _, member := range []string{"a:1", "b:1"} {
		t.Run(member, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			id, _ := s.keep(s.ctx, limit)
			s.renewed(id)
			s.silence(member)
			s.lives(id)
		})
	}
}

// The store keeps a lease for its TTL at least after each request for a renewal that it has
// answered was sent.
func TestRenewed(t *testing.T) {
	t.Parallel()
	s := start(t)
	granted, err := s.admin.Grant(s.ctx, Seconds(ttl))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	kept := make(chan error, 1)
	var last time.Duration
	renewals := 0
	go func() {
		kept <- Keep(ctx, s.client, granted.ID, ttl, limit, func(sent time.Duration) {
			if now := boottime.Now(); sent <= last || sent > now || now-sent > ttl/2 {
				t.Errorf("a request was sent at %v, after one at %v, now is %v", sent, last, now)
			}
			last = sent
			if renewals++; renewals == 3 {
				cancel()
			}
		}, nil)
	}()
	s.ended(kept, context.Canceled)
	if _, err := s.admin.Put(s.ctx, "key", "", clientv3.WithLease(granted.ID)); err != nil {
		t.Fatal(err)
	}
	for response := range s.admin.Watch(s.ctx, "key", clientv3.WithFilterPut()) {
		if len(response.Events) > 0 {
			break
		}
	}
	if lived := boottime.Now() - last; lived < ttl {
		t.Errorf("the lease has expired %v after the last request", lived)
	}
}

// A process that was stopped asks again before it considers the store silent.
func TestSilenceOfStoppedProcess(t *testing.T) {
	const limit = time.Minute
	now := boottime.Now()
	for _, c := range []struct {
		name           string
		since, checkAt time.Duration // before now
		over           bool
	}{
		{"answered", limit / 2, 0, false},
		{"silent", limit, 0, true},
		{"busy", limit, limit / 8, true},
		{"stopped", 2 * limit, limit / 2, false},
	} {
		s := silence{limit: limit, since: now - c.since, checkAt: now - c.checkAt}
		if over := s.over(); over != c.over {
			t.Errorf("%s: over %t, want %t", c.name, over, c.over)
		}
	}
}

// The first time another stream is opened, and then one to each member, however long none answers.
func TestAskAgain(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := &renewer{client: client, ttl: ttl, answers: make(chan answer)}
	ctx, cancel := context.WithCancel(t.Context())
	defer r.asking.Wait()
	defer cancel()
	for tries := 1; tries <= 8; tries++ {
		before := map[*stream]bool{}
		for _, s := range r.streams {
			before[s] = true
		}
		if wait := r.askAgain(ctx, ttl, tries); wait <= 0 || wait > ttl {
			t.Errorf("try %d: the next one is after %v", tries, wait)
		}
		opened := 0
		for _, s := range r.streams {
			if !before[s] {
				opened++
			}
		}
		if want := min(3, 2*tries-1); opened != want {
			t.Errorf("try %d has opened %d streams, want %d", tries, opened, want)
		}
	}
}
