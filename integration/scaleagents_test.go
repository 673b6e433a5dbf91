package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"rdzv/rdzv"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/presence"
	"rdzv/rdzv/secret"
)

const scaleName = "scale" // of all jobs

// A simulation is a job of one rdzv exec, which hosts the store, and simulated agents.
type simulation struct {
	scaleJob
	t      *testing.T
	ctx    context.Context
	cancel context.CancelCauseFunc
	host   *process
	store  *meet.Meeting // with which all agents connect
	agents []*simulatedAgent
	wire   atomic.Int64                                         // bytes on connections that are closed
	slow   atomic.Bool                                          // see slowReads
	silent time.Duration                                        // after which an agent regards the store as lost
	answer func(context.Context, rdzv.Question) ([]byte, error) // of all agents; nil answers nothing
}

// A simulatedAgent is a member of the job without a process or workers of its own.
type simulatedAgent struct {
	id      int
	client  *clientv3.Client
	session *rdzv.Session
	worker  rdzv.Worker // what the agent reports about it

	verdict, settled time.Time // when the agent learned of them
}

// start starts the host, with these flags too, whose worker ends at once, and finds its store.
func (j scaleJob) start(t *testing.T, n int, more ...string) *simulation {
	t.Helper()
	s := &simulation{scaleJob: j, t: t, silent: presence.DefaultTimeout}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	token := oneToken
	insecure := j.connection == "plain"
	flags := []string{"-v", "--job", scaleName, "--nodes", fmt.Sprint(n + 1),
		"--store", "127.0.0.1", fmt.Sprint("--insecure=", insecure)}
	s.host = newPlace(t).startWith([]string{"RDZV_TOKEN=" + token},
		rdzvExec(append(flags, more...), []string{"true"})...)
	const hosting = "hosting the store at "
	s.host.waitFor(hosting)
	_, address, _ := strings.Cut(s.host.linesWith(hosting)[0], hosting)
	var err error
	if s.store, err = meet.Meet(s.ctx, meet.Config{
		Job: scaleName, Store: address, Insecure: insecure,
		Token: func() ([]byte, error) { return secret.ParseToken(token) },
		Rank:  -1, LocalSize: -1, Size: n + 1, Nodes: n + 1,
	}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.store.Close)
	for i := range n {
		s.agents = append(s.agents, &simulatedAgent{id: i})
	}
	return s
}

// each calls do for the agents concurrently. The first error ends the context of all calls.
func (s *simulation) each(agents []*simulatedAgent, do func(*simulatedAgent) error) {
	s.t.Helper()
	var all sync.WaitGroup
	for _, a := range agents {
		all.Go(func() {
			if err := do(a); err != nil {
				s.cancel(fmt.Errorf("agent %d: %w", a.id, err))
			}
		})
	}
	all.Wait()
	if err := context.Cause(s.ctx); err != nil {
		s.t.Fatal(err)
	}
}

// joinAll makes all agents members and waits for their seats.
func (s *simulation) joinAll() {
	s.t.Helper()
	// If thousands of handshakes share few cores, the store ends some that take too long.
	joining := make(chan struct{}, 256)
	s.each(s.agents, func(a *simulatedAgent) error {
		joining <- struct{}{}
		err := s.join(a)
		<-joining
		if err != nil {
			return err
		}
		world, err := a.session.World(s.ctx)
		a.worker.Rank = world.Seat.First()
		return err
	})
}

func (s *simulation) join(a *simulatedAgent) (err error) {
	dial := func(ctx context.Context) (net.Conn, error) {
		conn, err := s.store.Dial(ctx)
		return s.slowReads(a, measuredConn{conn, &s.wire}), err
	}
	if a.client, err = rdzv.Dial(dial, s.silent); err != nil {
		return err
	}
	s.t.Cleanup(func() { a.client.Close() })
	self := rdzv.Member{
		ID: fmt.Sprint("agent-", a.id), Host: fmt.Sprint("node", a.id), PID: a.id + 1,
		Tasks: rdzv.Unplaced(1), LocalSize: rdzv.Unknown, NodeRank: rdzv.Unknown,
	}
	a.session, err = rdzv.Join(s.ctx, a.client, rdzv.Config{
		Job: scaleName, Self: self, ConnectTimeout: time.Minute, // see joinAll
		Answer: s.answer,
	})
	return err
}

// finish ends the job through its last agent, and lets the others leave.
func (s *simulation) finish() {
	s.t.Helper()
	remaining := s.agents
	last := remaining[len(remaining)-1]
	switch s.end {
	case "fail":
		last.worker.Code = 1
		if err := last.session.Fail(s.ctx, last.worker); err != nil {
			s.t.Fatal(err)
		}
	case "loss":
		last.client.Close()
		remaining = remaining[:len(remaining)-1]
	}
	s.each(remaining, func(a *simulatedAgent) error {
		if s.end != "done" {
			<-a.session.Context().Done()
			a.verdict = time.Now()
			a.worker.Stopped = a.worker.Code == 0
		}
		if err := a.session.Settle(s.ctx, []rdzv.Worker{a.worker}); err != nil {
			return err
		}
		summary, err := a.session.Leave(s.ctx)
		a.settled = time.Now()
		a.client.Close() // otherwise it reconnects when the store ends
		if err == nil && !summary.Settled {
			err = fmt.Errorf("these agents have not settled: %s", summary.Unsettled)
		}
		return err
	})
}

// A measuredConn adds the bytes that it has sent and received, TLS included, when it is closed.
type measuredConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c measuredConn) Close() error {
	conn := c.Conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if raw, err := conn.(*net.TCPConn).SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if err == nil {
				c.bytes.Add(int64(info.Bytes_sent + info.Bytes_received))
			}
		})
	}
	return c.Conn.Close()
}
