package agent

import (
	"context"
	"fmt"
	"strings"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/plural"
	"rdzv/rdzv/agent/internal/exports"
	"rdzv/rdzv/agent/internal/host"
)

// takeExports gives this agent's workers what rank 0's agent exports. If that can keep a worker
// from starting, it waits until all agents can start theirs. An error is the end of the job.
func (m *membership) takeExports(ctx context.Context) error {
	e := m.world.Exports
	if !m.later {
		m.noteExports()
	}
	if e == nil || m.world.Seat.Spare {
		return nil
	}
	local, err := m.withExports(ctx, e.Sealed)
	if err == nil {
		m.local = local
	}
	problems := withProblem(m.problems(), err)
	if m.world.Seat.Rank == 0 {
		problems = append(problems, m.self.Rank0Problems...)
	}
	if len(problems) == 0 && !e.Confirm {
		return nil
	}
	return m.session.Ready(context.Background(), problems, m.local.facts())
}

// withExports is what this agent knows about itself with the exported variables.
func (m *membership) withExports(ctx context.Context, text []byte) (_ *Local, err error) {
	exported, err := exports.Open(text, m.conn.key(), m.conn.external())
	if err != nil {
		return nil, err
	}
	environ, replaced := envmap.Override(m.local.Config.Environ, exported)
	if len(replaced) > 0 && m.local.FirstOfNode() {
		m.noteVerbose("replacing variables of this node by those of rank 0's agent", replaced)
	}
	slow := m.events.slowFiles("the program, which is looked up with exported variables,")
	inspect := func() (*Local, error) { return m.local.in(environ, exported), nil }
	l, err := host.Await(ctx, slow, inspect)
	if err != nil {
		return nil, fmt.Errorf("cannot look up the program with exported variables: %w", err)
	}
	return l, nil
}

// in is l with another environment, which has the exported variables.
func (l *Local) in(environ, exported []string) *Local {
	other := *l
	other.Config.Environ, other.env = environ, envmap.ParseEnv(environ)
	other.exports = exports.Exports{Variables: exported, Own: l.exports.Own}
	other.inspect()
	other.findProblems()
	if counted := other.Workers; counted != l.Workers { // the ranks are given already
		n := plural.Of(counted, "worker")
		err := fmt.Errorf("cannot start %s, as the exported list of devices requires", n)
		const advice = "give Config.ProcsPerNode the number of workers"
		other.Workers, other.Problems = l.Workers, withProblem(other.Problems, hint.With(err, advice))
	}
	return &other
}

// noteExports reports what rank 0's agent exports, and what of the user's request has no effect.
func (m *membership) noteExports() {
	own, rank0 := m.local.exports, m.world.Seat.Rank == 0
	if rank0 && len(own.Variables) > 0 {
		m.noteVerbose("exporting to all workers", exports.Names(own.Variables))
	}
	alone := m.world.Exports == nil && m.local.Placement.Launcher == envmap.None
	if !rank0 && alone && m.local.Config.exports() {
		m.events.send(EnvironmentNote{Text: "exporting no variables: rank 0's agent exports none"})
	}
	for _, e := range own.None {
		why := "it is not set in the environment of rank 0's agent"
		if e.Prefix {
			why = "there is no such variable in the environment of rank 0's agent"
		}
		if rank0 {
			m.events.send(EnvironmentNote{Text: "warning: not exporting " + e.String() + ": " + why})
		}
	}
}

// noteVerbose reports names of variables, never their values.
func (m *membership) noteVerbose(what string, names []string) {
	text := what + ": " + strings.Join(names, ", ")
	m.events.send(EnvironmentNote{Text: text, Verbose: true})
}
