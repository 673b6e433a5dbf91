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
// parent, its environment and its directory. Tests find it by its argument.
const loaders = `import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            if os.fork() > 0:
                os._exit(0)
            os.chdir("/")
            os.execve("/bin/sleep", ["sleep", "1000", os.environ["INTEGRATION_MARK"]], {})
        time.sleep(1000)
time.sleep(1000)`

// TestKillCampaign kills processes of jobs at random moments, from the start of the first agent on:
// the job ends, and nothing is left. make kills does so with thousands.
func TestKillCampaign(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	killed := map[string]*proctest.Kills{} // by launcher
	for _, launcher := range jobLaunchers {
		killed[launcher] = &proctest.Kills{}
	}
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
				if launcher == "direct" { // one user does not have jobs with different tokens
					flags = append(flags, "--job", fmt.Sprint("campaign", i))
				}
				j := c.startJob(t, launcher, 1, flags, program)
				if torch {
					j.waitForBatch()
				}
				j.killAtRandom(killed[launcher])
			}})
		}
	}
	runConcurrently(t, scenarios)
	for _, launcher := range jobLaunchers {
		t.Logf("%s: %d jobs\n%v", launcher, *killedJobs, killed[launcher])
	}
}

// waitForBatch waits until a rank of dataLoader has loaded a batch.
func (j *job) waitForBatch() {
	loaded := func() bool { found, _ := filepath.Glob(j.records() + "/*"); return len(found) > 0 }
	if !eventually(waitLimit, loaded) {
		j.t.Fatal("no rank has loaded a batch")
	}
}

// killAtRandom kills processes of some of the agents and stubs, and waits until the job has ended.
func (j *job) killAtRandom(killed *proctest.Kills) {
	if !eventually(waitLimit, func() bool { return len(j.agents()) > 0 }) {
		j.t.Fatal("no agent has started")
	}
	if rand.IntN(2) == 0 && !eventually(waitLimit, j.workersRun) { // on a busy machine that takes long
		j.t.Error("not all workers have started")
	}
	time.Sleep(rand.N(400 * time.Millisecond))
	if rand.IntN(8) == 0 {
		j.kill(victims{"all named rdzv", j.named("rdzv")}, killed)
	} else {
		tasks := j.tasks()
		rand.Shuffle(len(tasks), func(i, k int) { tasks[i], tasks[k] = tasks[k], tasks[i] })
		tasks = tasks[:min(len(tasks), 1+rand.IntN(max(len(tasks), 1)))] // all may have ended
		for _, task := range tasks {
			j.kill(victimsOf(task, j.launcher != "openmpi" || len(tasks) == 1), killed)
			time.Sleep(rand.N(20 * time.Millisecond))
		}
	}
	for _, command := range j.commands {
		command.code()
	}
	j.checkTree()
	j.removeFiles()
}

// workersRun tells whether each agent and stub has its workers.
func (j *job) workersRun() bool {
	sum := 0
	for _, task := range j.tasks() {
		sum += len(workersOf(runnerBelow(task.pid)))
	}
	return sum == j.ranks
}

// kill kills the victims that have not ended.
func (j *job) kill(chosen victims, killed *proctest.Kills) {
	begun, n := time.Now(), 0
	for i, v := range chosen.list {
		had := ""
		if v.after > 0 {
			had = fmt.Sprint(", of which it had a processor for ", j.awaitTime(v, chosen.list[i-1].pid))
		}
		if !proctest.HasEnded(v.pid) && trySignal(v.pid, syscall.SIGKILL) == nil {
			n++
			j.t.Logf("%s: killed the %s %d after %v%s", chosen.name, v.kind, v.pid, time.Since(begun), had)
		}
	}
	killed.Add(chosen.name, len(chosen.list), n)
}

// tasks are the agents and stubs that run.
func (j *job) tasks() (all []victim) {
	for _, pid := range j.agents() {
		kind := "stub"
		if j.launcher == "direct" || isAgent(pid) {
			kind = "agent"
		}
		all = append(all, victim{kind: kind, pid: pid})
	}
	return all
}

// named are the processes of the job that have a name in theirs, as pkill finds them.
func (j *job) named(name string) (all []victim) {
	tasks := j.tasks()
	for _, pid := range j.tree() {
		if !strings.Contains(nameOf(pid), name) {
			continue
		}
		v := victim{kind: "keeper", pid: pid}
		if i := slices.IndexFunc(tasks, func(t victim) bool { return t.pid == pid }); i >= 0 {
			v = tasks[i]
		}
		all = append(all, v)
	}
	return all
}

// awaitTime waits until a victim has had a processor for its time since the last one has ended, and
// returns how long it has had one, 0 if it has ended before.
func (j *job) awaitTime(v victim, last int) time.Duration {
	j.t.Helper()
	if !eventually(waitLimit, func() bool { return proctest.HasEnded(last) }) {
		j.t.Errorf("process %d has not died of SIGKILL", last)
	}
	return proctest.AwaitProcessorTime(v.pid, v.after)
}

// runnerBelow is the runner of an agent or a stub, 0 if it has none.
func runnerBelow(task int) int {
	children, _ := procfs.Children(procfs.System, task)
	i := slices.IndexFunc(children, func(pid int) bool { return nameOf(pid) == "tree-runner" })
	if i < 0 {
		return 0
	}
	return children[i]
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

// victims are killed in this order.
type victims struct {
	name string
	list []victim
}

// later is for the second of an agent or a stub and its runner, for which nothing is promised before it has
// had a processor for 4 ms. It needs 1 to 2 ms to kill everything, and more on a very busy machine: at
// a load of 70 on 2 processors something was left after 2.6 ms. There it may have to wait for that
// processor for much longer.
func (v victim) later() victim {
	v.after = 4*time.Millisecond + rand.N(4*time.Millisecond)
	return v
}

// victimsOf chooses processes of a task, an agent or a stub. It is the task if the others do not run
// yet. mpirun 4 kills the last task when three have ended, which takes a few milliseconds if the
// first was the agent: then runners are not killed.
func victimsOf(task victim, runners bool) victims {
	runner := runnerBelow(task.pid)
	workers := workersOf(runner)
	if len(workers) == 0 {
		return victims{task.kind + ": itself, early", []victim{task}}
	}
	r := victim{kind: "runner of the " + task.kind, pid: runner}
	w := victim{kind: "worker", pid: workers[rand.IntN(len(workers))]}
	choices := []victims{
		{"itself", []victim{task}},
		{"worker", []victim{w}},
		{"worker and itself", []victim{w, task}},
		{"runner", []victim{r}},
		{"worker and runner", []victim{w, r}},
		{"itself, later runner", []victim{task, r.later()}},
		{"runner, later itself", []victim{r, task.later()}},
	}
	if !runners {
		choices = choices[:3]
	}
	chosen := choices[rand.IntN(len(choices))]
	chosen.name = task.kind + ": " + chosen.name
	return chosen
}
