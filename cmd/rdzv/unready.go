package main

import (
	"errors"
	"slices"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/wrap"
)

// What keeps this agent from running its workers is no reason not to join: it goes
// into the member, so that the problems of all nodes are reported together and no
// other agent waits for this one.

// tryWorkers looks for such problems, as far as they show before the agents meet.
func (j *job) tryWorkers(a *app) {
	for _, err := range []error{j.find(a.environ), j.countWorkers(), j.enoughFiles(), j.tryDevices(a.env)} {
		j.problems = withProblem(j.problems, err)
	}
}

// allProblems are those of the job, and those that depend on which agent hosts the
// store.
func (g *agent) allProblems() []rdzv.Problem {
	problems := withProblem(slices.Clone(g.problems), g.holdPort())
	if g.conn.hosting() {
		problems = withProblem(problems, g.conn.hosted.problem)
	}
	return problems
}

// notStarted is an error on a problem of this node that keeps it from joining too.
type notStarted struct{ error }

func (n notStarted) ExitCode() int { return codeUnready }
func (n notStarted) Unwrap() error { return n.error }

// withProblem appends err, unless it is nil. An error that has an exit code of its
// own keeps it.
func withProblem(problems []rdzv.Problem, err error) []rdzv.Problem {
	if err == nil {
		return problems
	}
	p := rdzv.Problem{Code: codeUnready, Text: err.Error(), Hint: hintOf(err)}
	var c coded
	if errors.As(err, &c) {
		p.Code = c.ExitCode()
	}
	return append(problems, p)
}

// find looks for the program.
func (j *job) find(environ []string) (err error) {
	if j.path, err = wrap.Find(j.program[0], environ, ""); err != nil {
		return advice{err, runHint(err, j.program)}
	}
	return nil
}

// tryDevices makes the environment of a worker with the devices of this node.
func (j *job) tryDevices(env envmap.Env) error {
	alone := envmap.Identity{WorldSize: 1, LocalWorldSize: 1, Nodes: 1, Visible: j.devices}
	_, err := envmap.TorchChanges(env, alone, j.torchOptions())
	return err
}
