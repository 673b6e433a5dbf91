package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/rdzv"
	"rdzv/rdzv/store"
)

// hosted is the store in this process, and the leader of the job beside it.
type hosted struct {
	store   *store.Server
	problem error              // why this agent cannot run workers beside it, nil if it can
	end     func()             // closes the store, once
	cancel  context.CancelFunc // of the leader
	wg      sync.WaitGroup
}

// host starts the store and leads the job. l is nil where this agent is
// the only one.
func (g *agent) host(ctx context.Context, c *connection, l net.Listener) error {
	if err := cmp.Or(c.noDir, g.enoughFilesToHost()); err != nil {
		return notStarted{err}
	}
	problem := g.enoughFilesForAll() // before the store has opened its own
	callOff := hosting(g.agents)
	s, err := store.Start(ctx, store.Config{Dir: c.dir, PeerTimeout: g.peerTimeout, Failed: func(err error) { g.storeFailed(c.dir, err) }})
	if err != nil {
		callOff()
		return g.roomy(c.dir, err)
	}
	c.hosted = &hosted{store: s, problem: problem, cancel: func() {}, end: sync.OnceFunc(func() { callOff(); s.Close() })}
	c.client = s.Client()
	leader, err := rdzv.NewLeader(ctx, s.Client(), rdzv.LeaderConfig{
		Job: g.name, Agents: g.agents, SettleTimeout: g.settleTimeout(),
		Lost: s.Lost(), Waiting: g.waiting(time.Now()),
		ExitTimeout: g.exitTimeout, Straggling: func(s rdzv.Stragglers) { g.say.news("%v", s) },
	})
	if err != nil {
		return err
	}
	if l != nil {
		s.Serve(l)
	}
	leading, cancel := context.WithCancel(context.Background())
	c.hosted.cancel = cancel
	c.hosted.wg.Go(func() {
		if err := leader.Run(leading); err != nil && !errors.Is(err, context.Canceled) {
			g.say.line("%v", err)
			c.hosted.end() // nobody leads the job any more: the loss of the store ends it, for all
		}
	})
	return nil
}

// storeFailed ends this process at once, as the store has. Its watchdog ends the
// workers, and the other agents see that the store is lost.
func (g *agent) storeFailed(dir string, err error) {
	os.Exit(g.exitWith(codeExec, g.roomy(dir, err)))
}

// roomy is an error with what helps if the disk with the runtime directory is full.
func (g *agent) roomy(dir string, err error) error {
	switch {
	case !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT):
		return err
	case dir == g.env["XDG_RUNTIME_DIR"]:
		return advice{err, "unset XDG_RUNTIME_DIR, and set TMPDIR to a directory on a disk with room"}
	}
	return advice{err, "set TMPDIR to a directory on a disk with room"}
}

// drainTimeout bounds the wait for the other agents' goodbyes. They come at once;
// an agent that is stopped by a debugger does not hold up this one for ever.
const drainTimeout = 2 * time.Second

func (h *hosted) close() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	h.store.Drain(ctx) // whoever has not gone by then sees the connection break
	h.cancel()
	h.wg.Wait()
	h.end()
}

// waiting says who is missing, and since when; the leader calls it every few
// seconds.
func (g *agent) waiting(begin time.Time) func(rdzv.Roster) {
	return func(r rdzv.Roster) { g.say.waiting("%v after %v", r, time.Since(begin).Round(time.Second)) }
}
