package integration

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// inAttempts is a program whose ranks write their pid, host and MASTER_ADDR to DIR/ATTEMPT/RANK and
// wait, except in the attempt LAST.
const inAttempts = `dir=$0/$RDZV_ATTEMPT
	mkdir -p "$dir"
	echo "$$ $(hostname) $MASTER_ADDR" >"$0/draft$$" && mv "$0/draft$$" "$dir/$RANK"
	[ "$RDZV_ATTEMPT" = "$1" ] || exec sleep 1000`

// A replacedJob is a job without a launcher on hosts of a cluster, of which agents are lost.
type replacedJob struct {
	*clusterPlace
	flags   []string
	program []string
	agents  map[int]*process // by host
}

// replacedJob starts a job with an agent on each of the hosts 1 to n, whose second attempt succeeds.
func (c *cluster) replacedJob(t *testing.T, n int, flags ...string) *replacedJob {
	t.Helper()
	j := &replacedJob{clusterPlace: c.newPlace(t), agents: map[int]*process{}}
	j.flags = append([]string{
		"--nproc-per-node", "2", "--store", "node1", "--max-restarts", "3", "--peer-timeout", "3s",
		"--grace", "1s", "--job", filepath.Base(j.root),
	}, flags...)
	j.program = []string{"sh", "-c", inAttempts, j.dir("job"), "1"}
	for host := 1; host <= n; host++ {
		j.startAgent(host)
	}
	return j
}

// srunJob starts a job that may lose agents as one task on each of three hosts.
func (c *cluster) srunJob(t *testing.T, flags ...string) (*replacedJob, *process) {
	t.Helper()
	return c.srunTasks(t, 1, 1, append([]string{"--nproc-per-node", "2"}, flags...))
}

// srunTasks is srunJob with a number of tasks on each node, whose attempt last succeeds.
func (c *cluster) srunTasks(t *testing.T, tasks, last int, flags []string) (*replacedJob, *process) {
	t.Helper()
	return c.srunProgram(t, tasks, append([]string{"--grace", "1s"}, flags...), func(dir string) []string {
		return []string{"sh", "-c", inAttempts, dir, strconv.Itoa(last)}
	})
}

// srunProgram does so with a program that gets a directory.
func (c *cluster) srunProgram(
	t *testing.T, tasks int, flags []string, program func(dir string) []string,
) (*replacedJob, *process) {
	t.Helper()
	j := &replacedJob{clusterPlace: c.newPlace(t)}
	srun := []string{"srun", "--job-name", filepath.Base(j.root), "-O", "-N", "3", "--ntasks-per-node",
		strconv.Itoa(tasks), "--no-kill", "--kill-on-bad-exit=0"}
	return j, j.slurm(1, append(srun, rdzvExec(flags, program(j.dir("job")))...)...)
}

func (j *replacedJob) startAgent(host int, flags ...string) {
	j.t.Helper()
	j.agents[host] = j.on(host, rdzvExec(append(flags, j.flags...), j.program)...)
}

// ranks waits until all ranks of an attempt have started, checks that they are on these hosts, two
// on each, and returns their pids.
func (j *replacedJob) ranks(attempt int, hosts ...string) (pids []int) {
	j.t.Helper()
	var found []string
	master := "10.77.0.1" + strings.TrimPrefix(hosts[0], "node")
	for _, host := range hosts {
		for range 2 {
			rank := len(pids)
			file := filepath.Join(j.dir("job"), strconv.Itoa(attempt), strconv.Itoa(rank))
			var text []byte
			written := func() bool { text, _ = os.ReadFile(file); return len(text) > 0 }
			if !eventually(waitLimit, written) {
				j.t.Fatalf("rank %d of attempt %d has not started", rank, attempt)
			}
			pid, rest, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
			if want := host + " " + master; rest != want {
				j.t.Errorf("rank %d of attempt %d is on %s, want %s", rank, attempt, rest, want)
			}
			n, err := strconv.Atoi(pid)
			if err != nil {
				j.t.Fatal(err)
			}
			pids, found = append(pids, n), append(found, file)
		}
	}
	if all, _ := filepath.Glob(filepath.Join(filepath.Dir(found[0]), "*")); len(all) != len(pids) {
		j.t.Errorf("attempt %d has the ranks %q, want %d", attempt, all, len(pids))
	}
	return pids
}

// end checks that the job succeeds, and what each of its agents has printed.
func (j *replacedJob) end(want ...string) {
	j.t.Helper()
	for _, host := range slices.Sorted(maps.Keys(j.agents)) {
		j.agents[host].checkCode(0)
	}
	for _, text := range want {
		if lines := j.agents[1].linesWith(text); len(lines) != 1 {
			j.t.Errorf("%d lines with %q: %q", len(lines), text, j.agents[1].linesWith("rdzv: "))
		}
	}
}

const (
	lostNode3     = "lost the agent of ranks 4-5 "
	waitsForNode3 = "for an agent in place of node3 (ranks 4-5)"
)

// Agents are lost in different ways, and are started again on the same node or on another one, or
// replaced by spares. All workers of the job start again with the same ranks; no attempt has others.
func TestLostAgentIsReplaced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4)
	c.startSlurm(1, 3)
	all, moved := []string{"node1", "node2", "node3"}, []string{"node1", "node2", "node4"}
	three, spare := []string{"--nodes", "3"}, []string{"--nodes", "3", "--spares", "1"}
	var scenarios []scenario
	for _, s := range []struct {
		name         string
		agents       int
		flags        []string
		kill         func(j *replacedJob, workers []int)
		again        int      // the host on which an agent is started; 0 for none
		hosts, lines []string // in attempt 1
	}{
		{"again", 3, three, killAgent, 3, all, []string{lostNode3, waitsForNode3,
			"node3 runs ranks 4-5 again (restart 1 of 3)"}},
		{"elsewhere", 3, three, killAgent, 4, moved, []string{lostNode3, waitsForNode3,
			"node4 takes over ranks 4-5 of node3 (restart 1 of 3)"}},
		{"runner", 3, three, func(_ *replacedJob, workers []int) { kill(parentOf(workers[5])) }, 0, all,
			[]string{"lost the runner of rank ", "restarting all workers (restart 1 of 3)"}},
		{"spare", 4, spare, killAgent, 0, moved, []string{lostNode3,
			"node4 takes over ranks 4-5 of node3 (restart 1 of 3)"}},
		{"spare is lost", 4, spare, func(j *replacedJob, workers []int) {
			kill(j.agents[4].pid())
			j.agents[1].waitFor("lost the spare on node4")
			delete(j.agents, 4)
			kill(workers[5])
		}, 0, all, []string{"the job goes on with 0 spares", "restarting all workers (restart 1 of 3)"}},
	} {
		scenarios = append(scenarios, scenario{s.name, func(t *testing.T) {
			j := c.replacedJob(t, s.agents, s.flags...)
			s.kill(j, j.ranks(0, all...))
			if s.hosts[2] != "node3" || s.again != 0 {
				delete(j.agents, 3)
			}
			if s.again != 0 {
				j.agents[1].waitFor(waitsForNode3)
				j.startAgent(s.again)
			}
			j.ranks(1, s.hosts...)
			j.end(s.lines...)
		}})
	}
	scenarios = append(scenarios, scenario{"rank 0", func(t *testing.T) {
		j := c.replacedJob(t, 0, "--nodes", "2", "--spares", "1", "--store", "node2")
		for host := 1; host <= 3; host++ {
			j.startAgent(host, "--node-rank", strconv.Itoa(host-1))
		}
		kill(agentAbove(j.ranks(0, "node1", "node2")[0]))
		delete(j.agents, 1)
		j.ranks(1, "node3", "node2")
		j.agents[1] = j.agents[2]
		j.end("node3 takes over ranks 0-1 of node1 (restart 1 of 3)")
	}})
	// srun itself exits with the code of the task that was killed.
	scenarios = append(scenarios, scenario{"srun", func(t *testing.T) {
		j, srun := c.srunJob(t, "--spares", "1")
		kill(agentAbove(j.ranks(0, "node1", "node2")[3]))
		j.ranks(1, "node1", "node3")
		srun.checkCode(128 + 9)
		if lines := srun.linesWith("node3 takes over ranks 2-3 of node2 (restart 1 of 1)"); len(lines) != 1 {
			t.Errorf("the agents printed %q", srun.linesWith("rdzv: "))
		}
	}})
	for name, rank := range map[string]int{"agent of two tasks": 2, "another task": 3} {
		scenarios = append(scenarios, scenario{name, func(t *testing.T) {
			j, srun := c.srunTasks(t, 2, 1, []string{"--spares", "1"})
			kill(agentAbove(j.ranks(0, "node1", "node2")[rank]))
			j.ranks(1, "node1", "node3")
			srun.checkCode(128 + 9)
			if len(srun.linesWith("node3 takes over ranks 2-3 of node2 (restart 1 of 1)")) != 1 {
				t.Errorf("the agents printed %q", srun.linesWith("rdzv: "))
			}
		}})
	}
	scenarios = append(scenarios, scenario{"task of a spare", func(t *testing.T) {
		j, srun := c.srunTasks(t, 2, 1, []string{"--spares", "1"})
		workers := j.ranks(0, "node1", "node2")
		kill(j.taskWithout(workers, "SLURM_PROCID=5"))
		srun.waitFor("the job goes on with 0 spares")
		kill(workers[3])
		j.ranks(1, "node1", "node2")
		srun.code()
	}})
	runConcurrently(t, scenarios)
	t.Run("node", c.checkDisconnectedNode)
}

// taskWithout is the process of rdzv with a variable, that runs none of the workers.
func (j *replacedJob) taskWithout(workers []int, variable string) int {
	j.t.Helper()
	for _, pid := range j.marked() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		runs := func(worker int) bool { return parentOf(worker) == pid || agentAbove(worker) == pid }
		has := slices.Contains(strings.Split(string(text), "\x00"), variable)
		if has && isRdzv(pid) && !slices.ContainsFunc(workers, runs) {
			return pid
		}
	}
	j.t.Fatalf("no process with %s", variable)
	return 0
}

func killAgent(_ *replacedJob, workers []int) { kill(agentAbove(workers[5])) }

// A node is disconnected from two jobs: a spare takes over in one, and in the other the node is
// connected again, and its agent started again. Nothing of the first attempt is left by then.
func (c *cluster) checkDisconnectedNode(t *testing.T) {
	three, spare := []string{"--nodes", "3"}, []string{"--nodes", "3", "--spares", "1"}
	all, moved := []string{"node1", "node2", "node3"}, []string{"node1", "node2", "node4"}
	cut, spareForCut := c.replacedJob(t, 3, three...), c.replacedJob(t, 4, spare...)
	running := map[*replacedJob][]int{cut: cut.ranks(0, all...), spareForCut: spareForCut.ranks(0, all...)}
	disconnected := time.Now()
	c.hosts("cut", "3")
	spareForCut.ranks(1, moved...)
	t.Logf("a spare runs %v after its node was disconnected", time.Since(disconnected))
	for j, pids := range running {
		j.agents[3].checkCode(123)
		delete(j.agents, 3)
		j.agents[1].waitFor("restart 1 of 3")
		for _, pid := range pids {
			if commandLine(pid)[0] == "sleep" {
				t.Errorf("worker %d of attempt 0 is alive in attempt 1", pid)
			}
		}
	}
	c.hosts("heal", "3")
	cut.startAgent(3)
	cut.ranks(1, all...)
	cut.end(lostNode3, waitsForNode3, "node3 runs ranks 4-5 again (restart 1 of 3)")
	spareForCut.end("6 ranks on 3 nodes: node1 0-1, node2 2-3, node3 4-5 and 1 spare (node4)", lostNode3,
		"node4 takes over ranks 4-5 of node3 (restart 1 of 3)")
}

// A node is disconnected: the others say for how long its agent was silent, and its agent that it
// has lost the others.
func TestDisconnectedNodeIsNamed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	p := c.newPlace(t)
	flags := []string{"--nodes", "3", "--store", "node1", "--peer-timeout", "3s"}
	line := rdzvExec(flags, worker("wait", p.dir("job")))
	var agents []*process
	for host := 1; host <= 3; host++ {
		agents = append(agents, p.on(host, line...))
	}
	records(t, p.dir("job"), 3)
	c.hosts("cut", "3")
	checkCodes(123, agents...)
	const who = " on node3): it was silent for 3s"
	const all = "rdzv: lost the connection to the other agents: rank 0's agent on node1, which " +
		"hosted the store, was silent for 3s"
	for host, agent := range agents {
		want := []string{"rdzv: lost the agent of rank 2 (pid ", who}
		if host == 2 {
			want = []string{all}
		}
		if len(agent.linesWith(want...)) != 1 {
			t.Errorf("the agent on node%d printed %q, want a line with %q", host+1,
				agent.linesWith("rdzv:"), want)
		}
	}
}
