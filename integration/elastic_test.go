package integration

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const elasticLate = "waiting for the next attempt: the job already runs on "

// The number of nodes varies: nodes join late, and nodes are lost. The ranks of each attempt are
// consecutive; the nodes that remain keep their order, and the new ones come last.
func TestVariableNumberOfNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4)
	c.startSlurm(1, 3)
	elastic := func(t *testing.T, n int, flags ...string) *replacedJob {
		return c.replacedJob(t, n, append([]string{"--nodes", "2:4", "--last-call", "1s"}, flags...)...)
	}
	runConcurrently(t, []scenario{
		{"a late node takes part in the next attempt", func(t *testing.T) {
			j := elastic(t, 0, "--nodes", "2:3")
			for _, host := range []int{1, 3} {
				j.startAgent(host)
			}
			workers := j.ranks(0, "node1", "node3")
			j.startAgent(2)
			j.agents[2].waitFor(elasticLate + "2 nodes")
			j.startAgent(4)
			j.agents[4].checkCode(125)
			if lines := j.agents[4].linesWith("rdzv: "); len(lines) != 2 || !strings.HasSuffix(lines[0],
				"the job in this store already has all its agents") {
				t.Errorf("the agent that is one too many printed %q", lines)
			}
			delete(j.agents, 4)
			kill(workers[3])
			j.ranks(1, "node1", "node3", "node2")
			j.end("4 ranks on 2 nodes: node1 0-1, node3 2-3; rank 0 at 10.77.0.11",
				"6 ranks on 3 nodes: node1 0-1, node3 2-3, node2 4-5; rank 0 at 10.77.0.11 (restart 1 of 3)")
		}},
		{"fewer nodes, then others", func(t *testing.T) {
			j := elastic(t, 0, "--last-call", "1m")
			j.program[4] = "2"
			for host := range 4 {
				j.startAgent(host + 1)
			}
			kill(agentAbove(j.ranks(0, "node1", "node2", "node3", "node4")[3]))
			delete(j.agents, 2)
			workers := j.ranks(1, "node1", "node3", "node4")
			j.startAgent(2)
			j.agents[2].waitFor(elasticLate + "3 nodes")
			kill(agentAbove(workers[5]))
			delete(j.agents, 4)
			j.ranks(2, "node1", "node3", "node2")
			j.end("lost the agent of ranks 2-3 ", "lost the agent of ranks 4-5 ",
				"6 ranks on 3 nodes: node1 0-1, node3 2-3, node4 4-5; rank 0 at 10.77.0.11 (restart 1 of 3)")
		}},
		{"too few nodes wait for others", func(t *testing.T) {
			j := elastic(t, 2)
			kill(agentAbove(j.ranks(0, "node1", "node2")[3]))
			delete(j.agents, 2)
			j.agents[1].waitFor("for 1 more node (restart 1 of 3)")
			j.startAgent(4)
			j.ranks(1, "node1", "node4")
			j.end("lost the agent of ranks 2-3 ")
		}},
		{"srun", func(t *testing.T) {
			j, srun := c.srunJob(t, "--nodes", "2:3")
			kill(agentAbove(j.ranks(0, "node1", "node2", "node3")[3]))
			j.ranks(1, "node1", "node3")
			srun.checkCode(128 + 9)
			want := "4 ranks on 2 nodes: node1 0-1, node3 2-3; rank 0 at 10.77.0.11 (restart 1 of 1)"
			if lines := srun.linesWith(want); len(lines) != 1 {
				t.Errorf("the agents printed %q", srun.linesWith("rdzv: "))
			}
		}},
		{"agent of two tasks", func(t *testing.T) { c.loseElasticTask(t, 2) }},
		{"another task", func(t *testing.T) { c.loseElasticTask(t, 3) }},
		{"rdzv store", func(t *testing.T) {
			j := elastic(t, 0, "--nodes", "2:3")
			store, argument := j.startShared(4)
			j.flags = slices.Concat(j.flags, argument)
			j.loseLeader(3)
			store.signal(syscall.SIGTERM)
			store.checkCode(0)
			if left := store.linesWith("jobs in the store"); len(left) > 0 {
				t.Errorf("the store printed %q", left)
			}
		}},
	})
}

// loseElasticTask kills the task of a rank. There are two tasks on each node, which leaves the job.
func (c *cluster) loseElasticTask(t *testing.T, rank int) {
	t.Helper()
	j, srun := c.srunTasks(t, 2, 2, []string{"--nodes", "2:3", "--max-restarts", "3"})
	workers := j.ranks(0, "node1", "node2", "node3")
	kill(agentAbove(workers[rank]))
	workers = j.ranks(1, "node1", "node3")
	kill(agentAbove(workers[rank]))
	srun.code()
	for _, want := range []string{
		"4 ranks on 2 nodes: node1 0-1, node3 2-3; rank 0 at 10.77.0.11 (restart 1 of 3)",
		"hint: give --nodes a smaller MIN",
	} {
		if len(srun.linesWith(want)) == 0 {
			t.Errorf("the agents printed %q, want %q", srun.linesWith("rdzv: "), want)
		}
	}
}

// loseLeader kills the agent of rank 0, which leads the job of node1 and node2, in a store that no
// agent hosts. The next one takes in the agent of another host, which has joined late.
func (j *replacedJob) loseLeader(late int) {
	j.t.Helper()
	j.startAgent(1, "-v")
	j.agents[1].waitFor("connected to the store at ")
	j.startAgent(2)
	workers := j.ranks(0, "node1", "node2")
	j.startAgent(late)
	j.agents[late].waitFor(elasticLate + "2 nodes")
	kill(agentAbove(workers[0]))
	j.agents[1].checkCode(128 + 9)
	last := fmt.Sprint("node", late)
	j.ranks(1, "node2", last)
	j.agents[1] = j.agents[2]
	j.end("lost the agent of ranks 0-1 ", fmt.Sprintf("4 ranks on 2 nodes: node2 0-1, %s 2-3; "+
		"rank 0 at 10.77.0.12 (restart 1 of 3)", last))
}
