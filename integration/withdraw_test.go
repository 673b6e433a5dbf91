package integration

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nextRestart = "(restart 1 of 3)"

// term sends SIGTERM to the agents on these hosts, at once.
func (j *replacedJob) term(hosts ...int) {
	j.t.Helper()
	for _, host := range hosts {
		j.agents[host].signal(syscall.SIGTERM)
	}
}

// left checks that the agent on a host has left the job, with this line, and nothing of it remains.
func (j *replacedJob) left(host int, line string, workers ...int) {
	j.t.Helper()
	agent := j.agents[host]
	delete(j.agents, host)
	agent.checkCode(128 + int(syscall.SIGTERM))
	if lines := agent.linesWith("rdzv: "); len(lines) == 0 || !strings.Contains(lines[len(lines)-1], line) {
		j.t.Errorf("the agent on node%d printed %q, want %q", host, lines, line)
	}
	for _, pid := range workers {
		if syscall.Kill(pid, 0) == nil {
			j.t.Errorf("worker %d of the agent on node%d is alive", pid, host)
		}
	}
}

// SIGTERM to one node makes it leave a job that has a spare for it; SIGTERM to several at the same
// time ends the job, and so does one that cannot be replaced.
func TestNodeLeaves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4)
	c.startSlurm(1, 3)
	all, moved := []string{"node1", "node2", "node3"}, []string{"node1", "node2", "node4"}
	spares := []string{"--nodes", "3", "--spares", "1"}
	ends := func(name, line string, hosts ...int) scenario {
		return scenario{name, func(t *testing.T) {
			j := c.replacedJob(t, 4, spares...)
			j.ranks(0, all...)
			j.term(hosts...)
			for host := range j.agents {
				j.agents[host].checkCode(128 + int(syscall.SIGTERM))
			}
			if lines := j.agents[1].linesWith(line); len(lines) != 1 {
				t.Errorf("the agent on node1 printed %q, want %q", j.agents[1].linesWith("rdzv: "), line)
			}
		}}
	}
	runConcurrently(t, []scenario{
		{"one", func(t *testing.T) {
			j := c.replacedJob(t, 4, spares...)
			workers := j.ranks(0, all...)
			j.term(3)
			j.ranks(1, moved...)
			j.left(3, "node3 leaves the job: received SIGTERM; the job goes on without this node", workers[4:]...)
			j.end("node3 leaves the job: received SIGTERM; restarting all workers "+nextRestart,
				"node4 takes over ranks 4-5 of node3 "+nextRestart)
		}},
		{"rdzv stop", func(t *testing.T) {
			j := c.replacedJob(t, 4, spares...)
			workers := j.ranks(0, all...)
			const by = "rdzv stop on node4"
			stop := j.on(4, *rdzvBin, "stop", filepath.Base(j.root))
			stop.checkCode(0)
			for host, agent := range j.agents {
				agent.checkCode(128 + int(syscall.SIGTERM))
				if lines := agent.linesWith(by + " ended the job"); len(lines) != 1 {
					t.Errorf("the agent on node%d printed %q, want %q", host, agent.linesWith("rdzv: "), by)
				}
			}
			for _, pid := range workers {
				if syscall.Kill(pid, 0) == nil {
					t.Errorf("worker %d is alive", pid)
				}
			}
		}},
		{"spare", func(t *testing.T) {
			j := c.replacedJob(t, 4, spares...)
			workers := j.ranks(0, all...)
			j.term(4)
			j.left(4, "received SIGTERM: the job goes on without this agent")
			kill(workers[5])
			j.ranks(1, all...)
			j.end("lost the spare on node4", "the job goes on with 0 spares")
		}},
		{"a variable number of nodes", func(t *testing.T) {
			j := c.replacedJob(t, 3, "--nodes", "2:3")
			workers := j.ranks(0, all...)
			j.term(2)
			j.ranks(1, "node1", "node3")
			j.left(2, "node2 leaves the job: received SIGTERM; the job goes on", workers[2:4]...)
			j.end("node2 leaves the job: received SIGTERM; restarting all workers "+nextRestart,
				"4 ranks on 2 nodes: node1 0-1, node3 2-3")
		}},
		ends("two", "received SIGTERM: the job is stopped", 2, 3),
		ends("all", "received SIGTERM: the job is stopped", 1, 2, 3, 4),
		ends("the host of the store", "the job is stopped, because this agent hosts the store", 1),
		{"srun", func(t *testing.T) {
			j, srun := c.srunJob(t, "--spares", "1")
			j.leaves(srun, j.ranks(0, "node1", "node2")[3],
				"node3 takes over ranks 2-3 of node2 (restart 1 of 1)")
		}},
		{"srun, two tasks on each node", func(t *testing.T) {
			j, srun := c.srunTasks(t, 2, 1, []string{"--spares", "1"})
			j.leaves(srun, j.ranks(0, "node1", "node2")[3],
				"node3 takes over ranks 2-3 of node2 (restart 1 of 1)")
		}},
		{"srun, two tasks, a variable number of nodes", func(t *testing.T) {
			j, srun := c.srunTasks(t, 2, 1, []string{"--nodes", "2:3"})
			j.leaves(srun, j.ranks(0, "node1", "node2", "node3")[3],
				"4 ranks on 2 nodes: node1 0-1, node3 2-3; rank 0 at 10.77.0.11 (restart 1 of 1)")
		}},
		{"scancel", func(t *testing.T) {
			j, srun := c.srunJob(t, "--spares", "1")
			j.ranks(0, "node1", "node2")
			j.slurm(1, "scancel", "--name", filepath.Base(j.root)).checkCode(0)
			srun.checkCode(128 + int(syscall.SIGTERM))
			// Each node gets the signal from its own daemon. If one gets it later than the workers of
			// another one have ended, that one has announced a restart.
			if len(srun.linesWith("received SIGTERM: the job is stopped")) == 0 {
				t.Errorf("the agents printed %q", srun.linesWith("rdzv: "))
			}
		}},
		{"no spare: it is started again", func(t *testing.T) {
			j := c.replacedJob(t, 3, "--nodes", "3")
			workers := j.ranks(0, all...)
			j.term(3)
			j.left(3, "node3 leaves the job: received SIGTERM; the job goes on without this node", workers[4:]...)
			j.startAgent(3)
			j.ranks(1, all...)
			j.end("node3 leaves the job: received SIGTERM; waiting up to ", "node3 runs ranks 4-5 again "+nextRestart)
		}},
		{"all, and no spare", func(t *testing.T) {
			j := c.replacedJob(t, 3, "--nodes", "3")
			j.ranks(0, all...)
			j.term(1, 2, 3)
			for host := range j.agents {
				j.agents[host].checkCode(128 + int(syscall.SIGTERM))
			}
		}},
	})
}

// leaves sends SIGTERM to the task of a worker on node2, which leaves the job.
func (j *replacedJob) leaves(srun *process, worker int, want string) {
	j.t.Helper()
	if err := syscall.Kill(agentAbove(worker), syscall.SIGTERM); err != nil {
		j.t.Fatal(err)
	}
	j.ranks(1, "node1", "node3")
	srun.checkCode(0) // also of the tasks that have left
	if lines := srun.linesWith(want); len(lines) != 1 {
		j.t.Errorf("the agents printed %q", srun.linesWith("rdzv: "))
	}
}
