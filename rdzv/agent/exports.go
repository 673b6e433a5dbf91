package agent

import (
	"context"
	"fmt"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/plural"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/exports"
	"rdzv/rdzv/agent/internal/host"
)

// withExports returns a copy of old whose workers get the exported variables. It looks up the
// program again, because PATH may be exported; the error says that ctx has ended before that.
func withExports(
	ctx context.Context, old *Local, events *reporter, exported []string,
) (_ *Local, err error) {
	_, replaced := envmap.Override(old.Config.Environ, exported)
	if len(replaced) > 0 && old.FirstOfNode() {
		events.names("replacing variables of this node by those of rank 0's agent", replaced)
	}
	slow := events.slowFiles("the program, which is looked up with exported variables,")
	inspect := func() (*Local, error) { return exportedTo(old, exported), nil }
	l, err := host.Await(ctx, slow, inspect)
	if err != nil {
		return nil, fmt.Errorf("cannot look up the program with exported variables: %w", err)
	}
	return l, nil
}

// exportedTo is l with the exported variables.
func exportedTo(l *Local, exported []string) *Local {
	other := copied(l)
	for _, t := range other.all() {
		t.take(exported)
	}
	return other
}

// take gives the workers of a task the exported variables.
func (l *Local) take(exported []string) {
	l.Config.Environ, _ = envmap.Override(l.Config.Environ, exported)
	l.env = envmap.ParseEnv(l.Config.Environ)
	l.exports = exports.Exports{Variables: exported, Own: l.exports.Own}
	workers := l.Workers
	l.inspect()
	l.findProblems()
	if counted := l.Workers; counted != workers { // the ranks are given already
		n := plural.Of(counted, "worker")
		err := fmt.Errorf("cannot start %s, as the exported list of devices requires", n)
		const advice = "give --nproc-per-node the number of workers"
		l.Workers, l.Problems = workers, withProblem(l.Problems, hint.With(err, advice))
	}
}

// noteExports reports what rank 0's agent exports, and what of the user's request has no effect.
func noteExports(l *Local, events *reporter, w rdzv.World) {
	own, rank0 := l.exports, w.Seat.Has(0)
	if rank0 && len(own.Variables) > 0 {
		events.names("exporting to all workers", exports.Names(own.Variables))
	}
	alone := w.Exports == nil && l.Placement.Launcher == envmap.None
	if !rank0 && alone && l.Config.exports() {
		events.send(EnvironmentNote{Text: "exporting no variables: rank 0's agent exports none"})
	}
	for _, e := range own.None {
		why := "it is not set in the environment of rank 0's agent"
		if e.Prefix {
			why = "there is no such variable in the environment of rank 0's agent"
		}
		if rank0 {
			events.send(EnvironmentNote{Text: "warning: not exporting " + e.String() + ": " + why})
		}
	}
}
