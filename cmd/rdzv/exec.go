package main

import (
	"context"
	"errors"
	"time"

	"rdzv/rdzv"
	"rdzv/wrap"
)

// exec runs one agent: it meets the others, runs the workers with the place that
// was agreed on, and returns the job's exit code.
func (a *app) exec(args []string) int {
	j, err := a.plan(args)
	if err != nil {
		return a.say.usage(errorCode(err), err, "exec")
	}
	agent := &agent{app: a, job: j}
	return agent.run()
}

// agent is a job under way.
type agent struct {
	*app
	*job
	outside *outside      // signals from outside
	conn    *connection   // to the store
	self    rdzv.Member   // what it said of itself
	session *rdzv.Session // in the job
	world   rdzv.World
	port    *rdzv.HeldPort // MASTER_PORT, where this agent may run rank 0
}

// run is the walk of one agent from its placement to its exit code.
func (g *agent) run() int {
	g.outside = listen()
	defer g.outside.close()

	if err := g.join(); err != nil {
		return g.couldNotJoin(err)
	}
	defer g.conn.close()

	results, err := g.work()
	if err != nil {
		g.say.line("%v", err)
	}
	return g.leave(results)
}

// join meets the other agents and becomes a member. Signals end it.
func (g *agent) join() error {
	ctx, cancel := g.outside.until(g.joinTimeout)
	defer cancel()
	err := g.connect(ctx)
	for err == nil {
		if err = g.enter(ctx); err == nil {
			return nil
		}
		if !errors.Is(err, rdzv.ErrClosed) {
			g.conn.close()
			return err
		}
		// The store of the job before this one is still there. Its host leaves
		// when all have; ours comes up beside it or after it.
		err = g.again(ctx)
	}
	return err
}

// enter makes this agent a member.
func (g *agent) enter(ctx context.Context) (err error) {
	if err := g.holdPort(); err != nil {
		return err
	}
	g.self = g.member()
	g.session, err = rdzv.Join(ctx, g.conn.client, rdzv.Config{
		Job: g.name, Self: g.self, SettleTimeout: g.settleTimeout(),
	})
	return err
}

// settleMargin is how much longer than the grace the slowest agent may take to
// say that its workers have ended.
const settleMargin = 5 * time.Second

func (g *agent) settleTimeout() time.Duration { return g.grace + settleMargin }

// work runs the workers and returns how they ended; none if the job ended before
// they began.
func (g *agent) work() ([]wrap.Result, error) {
	stop := g.endOnSignal()
	defer stop()
	var err error
	if g.world, err = g.session.World(context.Background()); err != nil {
		g.tellEnd()
		return nil, g.settle(nil)
	}
	return g.runWorkers()
}

// leave says how the workers ended, hears how the job did, and reports it.
func (g *agent) leave(results []wrap.Result) int {
	summary, err := g.session.Leave(context.Background())
	if err != nil && !errors.Is(err, rdzv.ErrStoreLost) {
		g.say.detail("%v", err)
	}
	g.report(summary, results)
	return jobCode(summary)
}
