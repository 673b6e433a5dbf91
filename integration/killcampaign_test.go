package integration

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/internal/proctest"
)

var killedJobs = flag.Int("killed-jobs", 1,
	"jobs under each launcher of which TestKillCampaign kills processes")

// loaders is a rank that ignores SIGTERM and has two children, as of a DataLoader, which ignore it
// too. Each has a child that it does not wait for, and one in a session of its own that has lost its
// parent and its environment.
const loaders = `import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            if os.fork() > 0:
                os._exit(0)
            os.execve("/bin/sleep", ["sleep", "1000"], {})
        time.sleep(1000)
time.sleep(1000)`

// TestKillCampaign kills processes of jobs at random moments, from the start of the first agent on:
// the job ends, and nothing is left. make kills does so with thousands.
func TestKillCampaign(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	counts := make(chan map[string]int, len(jobLaunchers)**killedJobs) // by kind, and by launcher
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
			if total[name] += n; !slices.Contains(jobLaunchers, name) {
				sum += n
			}
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

// killAtRandom kills processes of some of the agents and stubs, waits until the job has ended, and
// returns how many of each kind were killed, and how many under its launcher.
func (j *job) killAtRandom() map[string]int {
	var agents []int
	started := func() bool { agents = j.agents(); return len(agents) > 0 }
	if !eventually(waitLimit, started) {
		j.t.Fatal("no agent has started")
	}
	time.Sleep(rand.N(400 * time.Millisecond)) // by then all processes run, mostly
	count, begin := map[string]int{}, time.Now()
	kill := func(v victim) {
		if trySignal(v.pid, syscall.SIGKILL) == nil {
			count[v.kind]++
			count[j.launcher]++
			j.t.Logf("killed the %s %d after %v", v.kind, v.pid, time.Since(begin))
		}
	}
	if rand.IntN(8) == 0 {
		for _, v := range j.named("rdzv") {
			kill(v)
		}
	} else {
		agents = j.agents()
		rand.Shuffle(len(agents), func(i, k int) { agents[i], agents[k] = agents[k], agents[i] })
		agents = agents[:1+rand.IntN(len(agents))]
		for _, agent := range agents {
			last := 0
			for _, v := range j.victimsOf(agent, j.launcher != "openmpi" || len(agents) == 1) {
				if v.after == 0 || j.hasHad(v, last) {
					kill(v)
				}
				last = v.pid
			}
			time.Sleep(rand.N(20 * time.Millisecond))
		}
	}
	for _, command := range j.commands {
		command.code()
	}
	j.checkTree()
	j.removeFiles()
	return count
}

// named are the processes of the job that have a name in theirs, as pkill finds them.
func (j *job) named(name string) (all []victim) {
	for _, pid := range j.tree() {
		if strings.Contains(nameOf(pid), name) {
			all = append(all, j.victim(pid))
		}
	}
	return all
}

// victim is an agent, or another process of its program.
func (j *job) victim(pid int) victim {
	switch {
	case !slices.Contains(j.agents(), pid):
		return victim{kind: "keeper", pid: pid}
	case j.launcher == "direct" || isAgent(pid):
		return victim{kind: "agent", pid: pid}
	}
	return victim{kind: "stub", pid: pid}
}

// hasHad waits until a victim has had the processor for its time since the last one has ended. It is
// false if it has ended before.
func (j *job) hasHad(v victim, last int) bool {
	j.t.Helper()
	if !eventually(waitLimit, func() bool { return proctest.HasEnded(last) }) {
		j.t.Errorf("process %d has not died of SIGKILL", last)
	}
	return proctest.HasHad(v.pid, v.after)
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

// A victim is a process that is killed, after it has had the processor for a time since the one
// before has ended.
type victim struct {
	kind  string
	pid   int
	after time.Duration
}

// later is for the second of an agent or a stub and its runner, which needs 1 to 2 ms of a processor
// to kill everything. On a busy machine it may have to wait for that processor for much longer.
func (v victim) later() victim {
	v.after = 2*time.Millisecond + rand.N(4*time.Millisecond)
	return v
}

// victimsOf chooses processes of an agent or a stub, which are killed in this order. It is that one
// if the others do not run yet. mpirun 4 kills the last task when three have ended, which takes a few
// milliseconds if the first was the agent: then runners are not killed.
func (j *job) victimsOf(agent int, runners bool) []victim {
	runner, workers := 0, []int(nil)
	children, _ := procfs.Children(procfs.System, agent)
	for _, pid := range children {
		if nameOf(pid) == "tree-runner" {
			runner, workers = pid, workersOf(pid)
		}
	}
	a := j.victim(agent)
	if len(workers) == 0 {
		return []victim{a}
	}
	r := victim{kind: "runner of the " + a.kind, pid: runner}
	w := victim{kind: "worker", pid: workers[rand.IntN(len(workers))]}
	choices := [][]victim{{a}, {w}, {w, a}}
	if runners {
		choices = append(choices, []victim{r}, []victim{w, r}, []victim{a, r.later()},
			[]victim{r, a.later()})
	}
	return choices[rand.IntN(len(choices))]
}
