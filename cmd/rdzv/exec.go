package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/masterport"
)

// exec runs one agent: it meets the others, runs the workers with the place that
// was agreed on, and returns the job's exit code.
func (a *app) exec(args []string) int {
	j, err := a.plan(args)
	if err != nil {
		code := errorCode(err)
		a.save(j.options, endReport{
			Kind: endedByError, Program: j.program, ExitCode: code, Message: err.Error(),
		})
		return a.say.usage(code, err, "exec")
	}
	frugal()
	signals := catchTurnSignals()
	agent := &agent{app: a, job: j, conn: &connection{}}
	code := agent.run()
	agent.awaitTurn(signals, code)
	return code
}

// agent is a job under way.
type agent struct {
	*app
	*job
	joinBy  time.Time     // when it gives up waiting for the others; zero is never
	outside *outside      // signals from outside
	conn    *connection   // to the store
	self    rdzv.Member   // what it said of itself
	session *rdzv.Session // in the job
	world   rdzv.World
	port    *masterport.Held // MASTER_PORT, where this agent may run rank 0

	apart error // why there is no world

	told      chan struct{} // closed when the user has been told of the job's end
	ends      []end         // of its workers
	tally     tally
	oomBefore int // out-of-memory kills before they began
}

// run is the walk of one agent from its placement to its exit code.
func (g *agent) run() int {
	g.joinBy = deadline(time.Now(), g.joinTimeout)
	g.outside = listen(g.joinBy, killsAfter(g.place.Launcher, g.env))
	defer g.outside.close()
	defer g.watchLauncher()()
	g.tellPlace()

	err := g.join()
	for err == nil && !g.gathered() {
		err = g.move()
	}
	if err != nil {
		return g.couldNotJoin(err)
	}
	defer g.conn.close()

	g.work()
	return g.leave()
}

// join meets the other agents and becomes a member. Signals end it.
func (g *agent) join() error {
	ctx := g.outside.joining
	return g.joinAt(ctx, g.connect(ctx))
}

// joinAt becomes a member in the store that was found without err, or in another.
// Unless it returns nil it has closed the connection.
func (g *agent) joinAt(ctx context.Context, err error) error {
	joined := false
	defer func() {
		if !joined {
			g.conn.close()
		}
	}()
	for err == nil {
		if err = g.enter(ctx); err == nil {
			joined = true
			return nil
		}
		// The store of the job before this one may still be there, or go this
		// moment. Its host leaves when all have; ours comes up beside it or after it.
		if !errors.Is(err, rdzv.ErrClosed) && !errors.Is(err, rdzv.ErrStoreLost) || g.conn.hosting() {
			break
		}
		err = g.again(ctx)
	}
	if errors.Is(err, rdzv.ErrFull) {
		err = full(err)
	}
	return err
}

// enter makes this agent a member in the store that was found.
func (g *agent) enter(ctx context.Context) (err error) {
	if err := g.dial(ctx); err != nil {
		return err
	}
	g.tellStore()
	g.self = g.member()
	g.session, err = rdzv.Join(ctx, g.conn.client, rdzv.Config{
		Job: g.name, Self: g.self, JoinBy: g.joinBy, SettleTimeout: g.settleTimeout(),
	})
	return err
}

// settleMargin is how much longer than the grace the slowest agent may take to
// say that its workers have ended.
const settleMargin = 5 * time.Second

func (g *agent) settleTimeout() time.Duration { return g.grace + settleMargin }

// gathered waits until all are here, and tells whether there is another store
// to go to instead.
func (g *agent) gathered() bool {
	g.outside.joined(g.session)
	stay := g.makeWay()
	g.world, g.apart = g.session.World(context.Background())
	stay()
	g.say.waited()
	if g.apart == nil {
		g.tellSeat()
	}
	var v *rdzv.Verdict
	return !errors.As(g.apart, &v) || v.Kind != rdzv.Moved
}

// work runs the workers, unless the job ends before they begin.
func (g *agent) work() {
	if g.apart != nil {
		g.tellEnd()
		g.settle(nil)
		return
	}
	defer g.tellAtEnd()()
	if err := g.runWorkers(); err != nil {
		g.cannotRun(err)
	}
}

// tellAtEnd makes the end of the job known to the user as soon as it is known
// here. The returned function waits until that is done.
func (g *agent) tellAtEnd() (wait func()) {
	g.told = make(chan struct{})
	context.AfterFunc(g.session.Context(), func() {
		defer close(g.told)
		g.tellEnd()
	})
	return func() { <-g.told }
}

// leave waits until all agents have settled, hears how the job ended, and
// reports it.
func (g *agent) leave() int {
	summary, err := g.session.Leave(context.Background())
	switch {
	case errors.Is(err, rdzv.ErrFull):
		return g.exitWith(codeExec, full(err))
	case err != nil && !errors.Is(err, rdzv.ErrStoreLost):
		g.say.detail("%v", err)
	}
	g.report(summary, errors.Is(err, rdzv.ErrStoreLost))
	return jobCode(summary)
}

// full is ErrFull with what helps: somebody started one agent too many, or two
// jobs under one name.
func full(err error) error {
	return advice{fmt.Errorf("cannot join: %w", err), "is there one agent too many? Two jobs at a time need a --job NAME each"}
}
