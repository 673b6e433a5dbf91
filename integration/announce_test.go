package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// An announceCase is an end of a job with 2 agents on each of two hosts, and how many lines of its
// agents contain a text.
type announceCase struct {
	program func() []string
	end     func(j *job) // after all workers have started; may be nil
	lines   map[string]int
}

// waits is a program that runs until it is stopped.
func waits() []string { return worker("wait", jobDir) }

var announceCases = map[string]announceCase{
	"failure": {func() []string { return worker("exit", jobDir, "3", "7") }, nil, map[string]int{
		"rdzv: rank 3 of 4 failed first": 1, "rdzv: rank 3 failed first: exit 7 ": 1,
	}},
	"signal": {
		waits, func(j *job) { j.signal(j.agentOf(lastRank), syscall.SIGTERM) },
		map[string]int{"received SIGTERM: the job is stopped": 2},
	},
	"lost task": {
		waits, func(j *job) { _, task := j.lastNode(); j.signal(task, syscall.SIGKILL) },
		map[string]int{"rdzv: lost the task of rank ": 2},
	},
	"lost agent": {
		waits, func(j *job) { agent, _ := j.lastNode(); j.signal(agent, syscall.SIGKILL) },
		map[string]int{
			"rdzv: lost the agent of ranks 2-3 ": 1, "rdzv: lost the agent of this node ": 1,
		},
	},
	"lost store": {
		waits, func(j *job) { j.signal(j.storeHost(), syscall.SIGKILL) },
		map[string]int{"which hosted the store": 1, "rdzv: lost the agent of this node ": 1},
	},
	"not started": {
		func() []string { return []string{"no-such-program"} }, nil,
		map[string]int{"rdzv: cannot run ": 2},
	},
}

// Under a launcher one agent of each node says why the job ended. On the node of a failed worker
// the report says it.
func TestOneLinePerNode(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	for name, a := range announceCases {
		t.Run(name, func(t *testing.T) {
			j := c.startJob(t, "slurm", 2, nil, a.program())
			if a.end != nil {
				j.workers = records(t, j.records(), workersPerJob)
				a.end(j)
			}
			j.commands[0].code()
			if name == "lost store" {
				j.removeFiles() // of the agent that was killed
			}
			for text, want := range a.lines {
				if lines := j.linesWith(text); len(lines) != want {
					t.Errorf("%d lines contain %q, want %d: %q", len(lines), text, want,
						j.linesWith("rdzv:"))
				}
			}
		})
	}
}

// With 16 agents on a node the report is all that they print about a failure, and one of them says
// what was replaced in the environment.
func TestFewLinesOfManyAgents(t *testing.T) {
	p := newPlace(t)
	line := openMPI(p, 16, nil, worker("exit", p.dir("job"), "2", "7"))
	job := p.startWith([]string{"NODE_RANK=5"}, line...)
	job.checkCode(7)
	if lines := job.linesWith("rdzv: replacing ", "NODE_RANK"); len(lines) != 1 {
		t.Errorf("the agents printed %q, want one line about NODE_RANK", lines)
	}
	if lines := job.linesWith("rdzv: rank 2 of 16 failed first"); len(lines) != 1 {
		t.Errorf("the agents printed %d reports, want 1", len(lines))
	}
	if lines := job.linesWith("rdzv: rank 2 failed first: "); len(lines) > 1 {
		t.Errorf("the agents printed %q, want at most the line of one", lines)
	}
}

// failOnRequest is a shell program whose rank 1 fails when the file "fail" exists. It ignores
// SIGTERM.
const failOnRequest = `trap "" TERM
echo $$ >"$0/pid.$RANK"
while [ $RANK != 1 ] || ! [ -e "$0/fail" ]; do sleep 0.1; done
exit 7`

// If the agent of the worker that failed first is lost before it has reported that, the agent that
// hosts the store reports it. The launcher is srun, because it leaves the other agents the time to
// end: Open MPI 5 kills them 0.25 s after a task was killed.
func TestReportOfLostReporter(t *testing.T) {
	p := newSlurm(t)
	dir := p.dir("job")
	flags := []string{"--grace", "1s",
		"-v"} // with -v silent agents show that they know the failure
	job := p.start(srun(p, 3, flags, []string{"sh", "-c", failOnRequest, dir})...)
	var pid int
	started := func() bool {
		all, _ := filepath.Glob(filepath.Join(dir, "pid.*"))
		text, _ := os.ReadFile(filepath.Join(dir, "pid.1"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return len(all) == 3 && pid != 0
	}
	if !eventually(waitLimit, started) {
		t.Fatal("the workers have not started")
	}
	agent := agentAbove(pid)
	if err := os.WriteFile(filepath.Join(dir, "fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	job.waitFor("rdzv: rank 1 failed first: exit 7")
	kill(agent)
	job.code()
	if lines := job.linesWith("rdzv: rank 1 of 3 failed first"); len(lines) != 1 {
		t.Errorf("the agents printed %d reports, want 1", len(lines))
	}
	p.removeFiles()
}
