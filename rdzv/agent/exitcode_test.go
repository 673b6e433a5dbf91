package agent_test

import (
	"errors"
	"syscall"
	"testing"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// The exit code of a job, by its verdict.
func TestExitCode(t *testing.T) {
	verdict := func(kind rdzv.Kind, code, signal int) rdzv.Summary {
		return rdzv.Summary{Verdict: &rdzv.Verdict{Kind: kind, Code: code, Signal: rdzv.Signal(signal)}}
	}
	unready := func(kinds ...rdzv.ProblemKind) rdzv.Summary {
		s := verdict(rdzv.Unready, 0, 0)
		for _, kind := range kinds {
			p := rdzv.NodeProblem{Problem: rdzv.Problem{Kind: kind}}
			s.Verdict.Problems = append(s.Verdict.Problems, p)
		}
		return s
	}
	ended := verdict(rdzv.Ended, 0, 15)
	ended.Settled, ended.Code = true, 3
	for _, c := range []struct {
		what    string
		summary rdzv.Summary
		want    int
	}{
		{"no verdict", rdzv.Summary{}, 123},
		{"all workers succeeded", verdict(rdzv.Done, 0, 0), 0},
		{"exit 7", verdict(rdzv.Failed, 7, 0), 7},
		{"SIGKILL", verdict(rdzv.Failed, 137, 9), 137},
		{"ended by SIGTERM, not settled", verdict(rdzv.Ended, 0, 15), 143},
		{"ended by SIGTERM, a worker exited 3", ended, 3},
		{"no problem of a node", unready(), 121},
		{"a check failed", unready(rdzv.OtherProblem), 121},
		{"rdzv cannot run", unready(rdzv.OtherProblem, rdzv.AgentProblem), 125},
		{"program missing", unready(rdzv.ProgramNotExecutable, rdzv.ProgramMissing), 127},
		{"program not executable", unready(rdzv.OtherProblem, rdzv.ProgramNotExecutable), 126},
		{"not all agents joined", verdict(rdzv.Incomplete, 0, 0), 124},
		{"stragglers", verdict(rdzv.Straggling, 0, 0), 122},
		{"stalled", verdict(rdzv.Stalled, 0, 0), 119},
		{"an agent was lost", verdict(rdzv.Lost, 0, 0), 123},
	} {
		if got := agent.ExitCode(agent.Result{Summary: c.summary}, nil); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.what, got, c.want)
		}
	}
}

// The exit code of an agent that was not a member of a job, by its error.
func TestExitCodeOfError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{&agent.JoinTimeoutError{}, 124},
		{&agent.SignalError{Signal: syscall.SIGINT}, 130},
		{&agent.SignalError{Signal: syscall.SIGTERM, Withdrawn: true}, 143},
		{&agent.SignalError{Signal: syscall.SIGTERM, Withdrawn: true, InStep: true}, 0},
		{&agent.ProblemError{Err: errors.New("the disk is full")}, 121},
		{&agent.LauncherDiedError{}, 123},
		{&agent.TaskLostError{}, 123},
		{errors.New("no token"), 125},
	} {
		if got := agent.ExitCode(agent.Result{}, c.err); got != c.want {
			t.Errorf("%T: exit code %d, want %d", c.err, got, c.want)
		}
	}
}
