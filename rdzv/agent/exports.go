package agent

import (
	"context"
	"fmt"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/plural"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/exports"
)

// take gives the workers the variables that rank 0's agent exports. It looks up the program again,
// because PATH may be exported; the error is the cause of ctx's end before that.
func (l *Local) take(ctx context.Context, events *reporter, exported []string) error {
	_, replaced := envmap.Override(l.Config.Environ, exported)
	if len(replaced) > 0 && l.FirstOfNode() {
		events.names("replacing variables of this node by those of rank 0's agent", replaced)
	}
	var workers []int // of each task; the ranks are given already
	for _, t := range l.all() {
		t.override(exported)
		workers = append(workers, t.Workers)
	}
	if err := l.examine(ctx, events); err != nil {
		return err
	}
	for i, t := range l.all() {
		if counted := t.Workers; counted != workers[i] {
			n := plural.Of(counted, "worker")
			err := fmt.Errorf("cannot start %s, as the exported list of devices requires", n)
			const advice = "give --nproc-per-node the number of workers"
			t.Workers, t.Problems = workers[i], withProblem(t.Problems, hint.With(err, advice))
		}
	}
	return nil
}

// override puts exported variables into the environment of a task.
func (l *Local) override(exported []string) {
	l.Config.Environ, _ = envmap.Override(l.Config.Environ, exported)
	l.env = envmap.ParseEnv(l.Config.Environ)
	l.exports = exports.Exports{Variables: exported, Own: l.exports.Own}
	l.Devices = envmap.VisibleDevices(l.env, l.Config.Root)
	l.examined, l.overridden = false, true
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

// ReadExports returns the variables that Config.Export and ExportFile select from an environment,
// for a program that gives them to all agents itself.
func ReadExports(given []string, file string, env envmap.Env) (Exported, error) {
	e, err := exports.Read(given, file, env, true)
	if err != nil {
		return Exported{}, err
	}
	all := Exported{Variables: e.Variables}
	for _, none := range e.None {
		all.Missing = append(all.Missing, none.String())
	}
	return all, nil
}

// Exported are variables that all agents get.
type Exported struct {
	Variables []string // NAME=VALUE
	Missing   []string // what selects none
}
