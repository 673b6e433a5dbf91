package agent

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/hint"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/cadence"
	"rdzv/rdzv/agent/internal/limits"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/presence"
	"rdzv/rdzv/store"
)

// hosted is the store in this process, and the leader of the job beside it.
type hosted struct {
	store   *store.Server
	problem error              // why this agent cannot run workers beside it, nil if it can
	serve   func()             // lets other agents connect
	end     func() error       // closes the store, once
	reader  string             // ID of the agent that reads all outcomes; "" if none does
	cancel  context.CancelFunc // of the leader
	wg      sync.WaitGroup
}

// host starts the store in this process and leads the job. listener is nil for a single agent.
func (c *connection) host(ctx context.Context, listener net.Listener) error {
	l := c.local
	if err := cmp.Or(c.noDir, limits.ToHost(l.Agents)); err != nil {
		return &ProblemError{err}
	}
	problem := limits.ForAll(l.Agents, l.Workers) // before the store opens files
	s, err := store.Start(ctx, store.Config{
		Dir: c.dir, PeerTimeout: l.Config.PeerTimeout,
		Failed: func(err error) { l.Config.StoreFailed(c.noRoom(err)) },
	})
	if err != nil {
		return c.noRoom(err)
	}
	leads := c.leaderConfig()
	leads.PeerTimeout = l.Config.PeerTimeout
	leader, err := rdzv.NewLeader(ctx, s.Client(), leads)
	if err != nil {
		s.Close()
		return err
	}
	leading, cancel := context.WithCancel(context.Background())
	h := &hosted{store: s, problem: problem, cancel: cancel, end: sync.OnceValue(s.Close)}
	failed := func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			c.events.diagnose(Warning, err)
			h.end() // without a leader the loss of the store ends the job for all
		}
	}
	h.serve = sync.OnceFunc(func() {
		if listener != nil {
			s.Serve(listener, func(id string, loss *presence.Loss) {
				failed(leader.AgentEnded(leading, id, loss))
			})
		}
	})
	h.wg.Go(func() {
		failed(leader.Run(leading))
		cancel() // nobody reads any more which agents have left
	})
	c.hosted, c.client = h, s.Client()
	return nil
}

// leaderConfig is how this agent leads the job, if it does.
func (c *connection) leaderConfig() rdzv.LeaderConfig {
	l := c.local
	spares := l.Config.Spares
	if l.Config.Check != nil { // spares are checked like other nodes
		spares = 0
	}
	return rdzv.LeaderConfig{
		Job: l.Job, Tasks: l.Agents, Nodes: meet.NodesOf(c.meetConfig()),
		Unattended: !l.Placement.Launcher.Reports(), Refused: c.refusals.byToken,
		OtherVersion: c.refusals.byVersion,
		MinTasks:     l.Config.MinNodes, LastCall: l.Config.LastCall,
		SettleTimeout: l.Config.settleTimeout(), ExitTimeout: l.Config.ExitTimeout,
		Waiting: func(r rdzv.Roster, waited time.Duration) {
			c.events.send(Waiting{r, rdzv.Seconds(waited)})
		},
		NextWaiting: cadence.Cadence{Every: l.Config.ReportEvery}.Next,
		Compared:    c.events.compared,
		Check:       c.checkConfig(),
		Restarts:    l.Config.Restarts,
		LostGrace:   l.Config.lostGrace(),
		Spares:      spares,
		Replaceable: l.layout().MayReplace(c.sharedStore()),
		Warn:        func(err error) { c.events.diagnose(Warning, err) },
		Straggling:  func(s rdzv.Stragglers) { c.events.send(Stragglers{s}) },
		Init:        func(p rdzv.InitProgress) { c.events.send(InitProgress{p}) },
	}
}

// settleMargin is how much longer than the grace the slowest agent may take to report that its
// workers have ended, or than the peer timeout the leader may take to notice that one is lost.
const settleMargin = 5 * time.Second

// settleTimeout is longer than the peer timeout if there are restarts: the workers of a lost agent
// may cause others to fail at once, and only if the loss is noticed after that its ranks are given
// to another agent.
func (c *Config) settleTimeout() time.Duration {
	if c.Restarts.Max > 0 {
		return max(c.Grace, c.lostAfter()) + settleMargin
	}
	return c.Grace + settleMargin
}

// noRoom adds a suggestion to an error if the disk with the runtime directory is full.
func (c *connection) noRoom(err error) error {
	switch {
	case !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT):
		return err
	case c.dir == c.local.env["XDG_RUNTIME_DIR"]:
		return hint.With(err, "unset XDG_RUNTIME_DIR, and set TMPDIR to a directory with free space")
	}
	return hint.With(err, "set TMPDIR to a directory with free space")
}

// drainTimeout is how long the host of the store waits for the other agents to leave if none does.
// They leave at once, except for an agent that is stopped, for example by a debugger, but thousands
// of them need some time.
const drainTimeout = 2 * time.Second

// readTimeout is how long it waits for the agent that reads all outcomes.
const readTimeout = time.Minute

func (h *hosted) close() error {
	h.drain()
	h.cancel()
	h.wg.Wait()
	return h.end()
}

// drain waits until the other agents have left. One that has not left after drain sees the
// connection break.
func (h *hosted) drain() {
	for began, connected := time.Now(), h.store.Connected(); connected > 0; {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		_ = h.store.Drain(ctx)
		cancel()
		before := connected
		connected = h.store.Connected()
		reads := h.store.IsConnected(h.reader) && time.Since(began) < readTimeout
		if connected == before && !reads {
			return
		}
	}
}

// readBy notes which agent reads all outcomes when all have settled, if another one does.
func (h *hosted) readBy(s rdzv.Summary) {
	if v := s.Verdict; v != nil && v.Kind == rdzv.Failed && s.Settled {
		h.reader = v.By
	}
}

// moveToBetterHost moves all members of this store to another store as soon as the meeting knows of
// a better host, until stay is called: without a launcher two agents may have begun to host a store
// before they found each other.
func (c *connection) moveToBetterHost(s *rdzv.Session) (stay func()) {
	meeting := c.meeting
	if meeting == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	if c.hosting() {
		wg.Go(func() {
			select {
			case <-meeting.BetterHost:
				c.events.write(func(ctx context.Context) error {
					moved, err := s.Move(ctx)
					if moved {
						meeting.Redirect()
					}
					return err
				})
			case <-ctx.Done():
			}
		})
	}
	return func() { cancel(); wg.Wait(); meeting.Agreed() }
}
