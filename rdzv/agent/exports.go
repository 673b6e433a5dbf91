package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/plural"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
)

// exports is what the workers of all agents get from this agent if it runs rank 0. Another agent
// knows only the values that the user has given.
type exports struct {
	variables []string        // NAME=VALUE
	none      []envmap.Export // which select no variable
	own       []string        // names of what they select from the environment of this agent
}

// readExports determines the exports from the configuration, the environment and the file.
func (l *Local) readExports() error {
	list, err := envmap.ParseExports(l.Config.Export)
	if err != nil {
		return err
	}
	own, _, _ := envmap.Exported(l.env, list)
	l.exports.own = namesOf(own)
	if !l.layout().MayRunRank0() {
		list = slices.DeleteFunc(list, func(e envmap.Export) bool { return !e.Given })
	} else if file := l.Config.ExportFile; file != "" {
		lines, err := readExportFile(file)
		if err != nil {
			return err
		}
		list = append(lines, list...)
	}
	l.exports.variables, l.exports.none, err = envmap.Exported(l.env, list)
	return err
}

// maxExportFile leaves space for comments.
const maxExportFile = 8 * envmap.MaxExported

func readExportFile(name string) ([]envmap.Export, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read exports: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxExportFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read exports: %w", err)
	}
	if len(text) > maxExportFile {
		err := fmt.Errorf("larger than %d bytes", maxExportFile)
		return nil, fmt.Errorf("cannot read exports: %q: %w", name, err)
	}
	exports, err := envmap.ParseExportFile(string(text))
	if err != nil {
		return nil, hint.With(fmt.Errorf("cannot read exports: %q: %w", name, err), Hint(err))
	}
	return exports, nil
}

const sealedExports = "exports" // what the key is used for

// sealExports is what this agent publishes of its exports, nil if there are none.
func (m *membership) sealExports() (*rdzv.Exports, error) {
	variables := m.local.exports.variables
	if len(variables) == 0 || !m.local.layout().MayRunRank0() {
		return nil, nil
	}
	text, key := []byte(strings.Join(variables, "\x00")), m.conn.key()
	switch {
	case key != nil:
		text = key.Seal(sealedExports, text)
	case !m.conn.external(): // etcd decides who may read it
		return nil, errors.New("cannot export variables: the job has no key (Config.Insecure)")
	}
	return &rdzv.Exports{
		Sealed:    text,
		Variables: namesOf(variables),
		Confirm:   envmap.MayPreventStart(variables),
	}, nil
}

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
	if key := m.conn.key(); key != nil {
		if text, err = key.Open(sealedExports, text); err != nil {
			return nil, fmt.Errorf("cannot read the variables that rank 0's agent exports: %w", err)
		}
	} else if !m.conn.external() {
		return nil, errors.New("rank 0's agent exports variables, but the job has no key")
	}
	exported := strings.Split(string(text), "\x00")
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
	other.exports = exports{variables: exported, own: l.exports.own}
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
	if rank0 && len(own.variables) > 0 {
		m.noteVerbose("exporting to all workers", namesOf(own.variables))
	}
	alone := m.world.Exports == nil && m.local.Placement.Launcher == envmap.None
	if !rank0 && alone && m.local.Config.exports() {
		m.events.send(EnvironmentNote{Text: "exporting no variables: rank 0's agent exports none"})
	}
	for _, e := range own.none {
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

// namesOf are the names of NAME=VALUE entries.
func namesOf(environ []string) []string {
	names := make([]string, len(environ))
	for i, entry := range environ {
		names[i], _, _ = strings.Cut(entry, "=")
	}
	return names
}
