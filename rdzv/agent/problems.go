package agent

import (
	"errors"
	"slices"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/limits"
	"rdzv/rdzv/agent/internal/program"
	"rdzv/wrap"
)

// An agent that cannot run its workers joins nevertheless, with its problems, so that the problems
// of all nodes are reported together and no other agent waits for this one.

// findProblems finds such problems as far as possible before the agents meet.
func (l *Local) findProblems() {
	errs := l.setup.Check()
	l.Path, l.HeadStart = l.setup.Path, l.setup.HeadStart
	errs = append(errs, l.countWorkers())
	errs = append(errs, limits.ForWorkers(l.Workers),
		l.identities().CheckDevices(l.env, l.Config.torchOptions(l.OwnTasks)), l.setup.MakeLogDir())
	l.Problems = slices.Clone(l.Config.Problems)
	for _, err := range errs {
		l.Problems = withProblem(l.Problems, err)
	}
}

// withProblem appends err, unless it is nil.
func withProblem(problems []rdzv.Problem, err error) []rdzv.Problem {
	if err == nil {
		return problems
	}
	p := rdzv.Problem{Kind: rdzv.OtherProblem, Text: err.Error(), Hint: Hint(err)}
	find, isFind := errors.AsType[*wrap.FindError](err)
	start, isStart := errors.AsType[*program.StartError](err)
	switch {
	case isFind && find.ExitCode() == CodeMissing, isStart && start.Missing:
		p.Kind = rdzv.ProgramMissing
	case isFind, isStart:
		p.Kind = rdzv.ProgramNotExecutable
	}
	return append(problems, p)
}

// ProblemError is a problem that prevents this agent even from joining: it would have to host the
// store, and cannot.
type ProblemError struct{ Err error }

func (e *ProblemError) Error() string { return e.Err.Error() }
func (e *ProblemError) Unwrap() error { return e.Err }

// CheckLimits checks whether this process may open as many files and use as many addresses as an
// agent itself needs.
func CheckLimits() error { return limits.Check() }
