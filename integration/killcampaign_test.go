package integration

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

var killedJobs = flag.Int("killed-jobs", 1,
	"jobs under each launcher of which TestKillCampaign kills processes")

// loaders is a rank that ignores SIGTERM and has two children, as of a DataLoader, which ignore it
// too. Each has a child that it does not wait for, and one in a session of its own that has lost its
// parent.
const loaders = `import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            if os.fork() > 0:
                os._exit(0)
        time.sleep(1000)
time.sleep(1000)`

// TestKillCampaign kills processes of jobs at random moments, from the start of the first agent on:
// the job ends, and nothing is left. make kills does so with thousands.
func TestKillCampaign(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	counts := make(chan map[string]int, len(jobLaunchers)**killedJobs)
	var scenarios []scenario
	for i := range *killedJobs {
		program, torch := []string{python, "-IS", "-c", loaders}, i%25 == 1 // its import takes seconds
		if torch {
			program = []string{python, "-c", dataLoader, jobDir}
		}
		for _, launcher := range jobLaunchers {
			scenarios = append(scenarios, scenario{fmt.Sprint(launcher, i), func(t *testing.T) {
				// Without a launcher nobody tells an agent of one that was killed before it joined.
				flags := []string{"--grace", "500ms", "--peer-timeout", "3s", "--join-timeout", "10s"}
				j := c.startJob(t, launcher, 1, flags, program)
				if torch {
					j.waitForBatch()
				}
				counts <- j.killAtRandom()
			}})
		}
	}
	runConcurrently(t, scenarios)
	close(counts)
	total, sum := map[string]int{}, 0
	for count := range counts {
		for name, n := range count {
			total[name] += n
			sum += n
		}
	}
	t.Logf("SIGKILL to %d processes of %d jobs: %v", sum, len(scenarios), total)
}

// waitForBatch waits until a rank of dataLoader has loaded a batch.
func (j *job) waitForBatch() {
	loaded := func() bool { found, _ := filepath.Glob(j.records() + "/*"); return len(found) > 0 }
	if !eventually(waitLimit, loaded) {
		j.t.Fatal("no rank has loaded a batch")
	}
}

// killAtRandom kills processes of some of the agents, waits until the job has ended, and returns how
// many of each kind were killed.
func (j *job) killAtRandom() map[string]int {
	var agents []int
	started := func() bool { agents = j.agents(); return len(agents) > 0 }
	if !eventually(waitLimit, started) {
		j.t.Fatal("no agent has started")
	}
	time.Sleep(rand.N(400 * time.Millisecond)) // by then all processes run, mostly
	agents = j.agents()
	rand.Shuffle(len(agents), func(i, k int) { agents[i], agents[k] = agents[k], agents[i] })
	count, begin := map[string]int{}, time.Now()
	agents = agents[:1+rand.IntN(len(agents))]
	runners := j.launcher != "openmpi" || len(agents) == 1
	for _, agent := range agents {
		for _, v := range victimsOf(agent, runners) {
			if trySignal(v.pid, syscall.SIGKILL) == nil {
				count[v.kind]++
				j.t.Logf("killed the %s %d, of agent %d, after %v", v.kind, v.pid, agent, time.Since(begin))
			}
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
	for _, command := range j.commands {
		command.code()
	}
	j.removeFiles()
	return count
}

// workersOf are the workers of a runner, which are in its session and lead a process group each: it
// has adopted other processes, whose end does not end a job.
func workersOf(runner int) []int {
	children, _ := procfs.Children(procfs.System, runner)
	session, _ := unix.Getsid(runner)
	return slices.DeleteFunc(children, func(pid int) bool {
		group, _ := unix.Getpgid(pid)
		own, _ := unix.Getsid(pid)
		return group != pid || own != session
	})
}

// A victim is a process that is killed.
type victim struct {
	kind string
	pid  int
}

// victimsOf chooses processes of an agent, which are killed in this order. It is the agent if the
// others do not run yet. An agent and its runner are not killed both: a descendant that left the
// tree in the same millisecond would survive. mpirun 4 kills the last task when three have ended,
// which takes a few milliseconds if the first was the agent: then runners are not killed.
func victimsOf(agent int, runners bool) []victim {
	runner, workers := 0, []int(nil)
	children, _ := procfs.Children(procfs.System, agent)
	for _, pid := range children {
		if nameOf(pid) == "tree-runner" {
			runner, workers = pid, workersOf(pid)
		}
	}
	if len(workers) == 0 {
		return []victim{{"agent", agent}}
	}
	a, h := victim{"agent", agent}, victim{"runner", runner}
	w := victim{"worker", workers[rand.IntN(len(workers))]}
	choices := [][]victim{{a}, {w}, {w, a}}
	if runners {
		choices = append(choices, []victim{h}, []victim{w, h})
	}
	return choices[rand.IntN(len(choices))]
}
