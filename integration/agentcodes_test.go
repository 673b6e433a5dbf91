package integration

import (
	"slices"
	"syscall"
)

// checkAgentCodes waits for the end of all processes and checks the exit codes of the agents that
// were not killed. Each must be one of those given. It returns the codes.
func (j *job) checkAgentCodes(want ...int) []int {
	j.t.Helper()
	j.checkTree() // then the shells of recordingExitCode have ended too
	return j.compareAgentCodes(want...)
}

// awaitShells waits until the shells of recordingExitCode that are parents of agents have ended.
func (j *job) awaitShells() {
	j.t.Helper()
	for parent := range j.agentsBy {
		ended := func() bool { state := stateOf(parent); return state == "X" || state == "Z" }
		if !eventually(waitLimit, ended) {
			j.t.Errorf("process %d has not ended: %q", parent, commandLine(parent))
		}
	}
}

func (j *job) compareAgentCodes(want ...int) (codes []int) {
	j.t.Helper()
	all := j.agentCodes()
	if len(all) == 0 && len(j.signalled) == 0 {
		j.t.Error("no agent has an exit code")
	}
	for parent, code := range all {
		if j.mayHaveOtherCode(parent, code) {
			continue
		}
		codes = append(codes, code)
		if !slices.Contains(want, code) {
			j.t.Errorf("an agent ended with exit code %d, want %d", code, want)
		}
	}
	slices.Sort(codes)
	return codes
}

// mayHaveOtherCode says that an agent's code depends on more than the job.
func (j *job) mayHaveOtherCode(parent, code int) bool {
	switch signal := j.signalled[j.agentsBy[parent]]; {
	case signal == syscall.SIGKILL, signal == syscall.SIGSTOP: // then its runner has killed it
		return true
	case code == 128+int(syscall.SIGKILL) && j.launcher == "slurm" && j.orphaned:
		return true // slurmd kills the processes of an srun that has ended: this agent before its parent
	default:
		return false
	}
}

// agentsByParent returns the agents of the workers by the pids of their parents.
func (j *job) agentsByParent() map[int]int {
	agents := map[int]int{}
	for rank := range j.workers {
		agent := j.agentOf(rank)
		agents[parentOf(agent)] = agent
	}
	return agents
}
