package integration

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// lastRankAbsent is a program that starts rdzv exec, but for the last rank, which never comes.
const lastRankAbsent = `if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}" = 3 ]; then exec sleep 1000; fi; exec "$@"`

// While the agents wait for one that is missing, one of them is killed: the others do not wait any longer.
func TestKilledWhileWaiting(t *testing.T) {
	f := newField(t)
	var table results
	var scenarios []scenario
	for _, launcher := range jobLaunchers {
		for _, hosts := range []int{1, 2} {
			for name, who := range map[string]func(j *job) int{
				"an agent": (*job).guest, "store's agent": (*job).host,
			} {
				if launcher == "hydra" {
					continue // the missing one keeps all in PMI's barrier, where Hydra kills them; see TestKilledWhileJoining
				}
				scenarios = append(scenarios, scenario{fmt.Sprintf("%s/%s%d", name, launcher, hosts), func(t *testing.T) {
					table.add(f.killWhileWaiting(t, name, launcher, hosts, who))
				}})
			}
		}
	}
	runConcurrently(t, scenarios)
	t.Log("\n" + table.String())
}

func (f *field) killWhileWaiting(t *testing.T, name, launcher string, hosts int, who func(j *job) int) result {
	j := f.waiting(t, launcher, hosts)
	rdzvs := j.rdzvs()
	bed := watchExits(rdzvs)
	defer bed.close()
	signalled := who(j)
	parent := parentOf(signalled)
	began := time.Now()
	j.strike(signalled, syscall.SIGKILL)
	bed.wait(10*time.Second, nil)
	r := result{killCase: name + ", waiting", launcher: launcher, hosts: hosts, survivors: len(bed.pidfds),
		all: bed.last(began, setOf(rdzvs))}
	for pid := range bed.pidfds {
		t.Errorf("process %d is still alive: %q", pid, commandLine(pid))
	}
	for _, pid := range j.tree() { // the one that never came, and a launcher that waits for it
		if name := nameOf(pid); name == "sleep" || name == "srun" {
			kill(pid)
		}
	}
	r.commands = j.launcherCodes()
	j.agents = map[int]int{parent: signalled}
	r.codes = j.checkAgentCodes(123)
	j.removeLeftovers()
	return r
}

// waiting starts a job of which the last agent never comes, and returns when all others are members.
func (f *field) waiting(t *testing.T, launcher string, hosts int) *job {
	t.Helper()
	agents := workersPerJob - 1
	var j *job
	if launcher == "byhand" {
		agents = 2
		j = f.startJob(t, launcher, hosts, []string{"--nodes", "3"}, []string{"true"})
	} else {
		j = f.startJob(t, launcher, hosts, []string{"--nproc-per-node", "1"}, []string{"true"}, "sh", "-c", lastRankAbsent, "sh")
	}
	if !eventually(waitLimit, func() bool { return len(j.agentsNow()) == agents && connections(j.host()) >= agents-1 }) {
		t.Fatalf("of %d agents %d have come, %d to the store", agents, len(j.agentsNow()), connections(j.host()))
	}
	return j
}

// While the agents meet, at any moment, something is killed: nothing stays, and whoever lives says so with 123 or, where the dead one had not
// come in yet, 124.
func TestKilledWhileJoining(t *testing.T) {
	f := newField(t)
	var scenarios []scenario
	for _, launcher := range jobLaunchers {
		for i, m := range joinSteps {
			scenarios = append(scenarios, scenario{launcher + "/" + m.name, func(t *testing.T) {
				f.killWhileJoining(t, launcher, 1+i%2, m.come)
			}})
		}
	}
	runConcurrently(t, scenarios)
}

// joinSteps are steps of a meeting.
var joinSteps = []struct {
	name string
	come func(j *job) bool
}{
	{"an agent runs", func(j *job) bool { return len(j.agentsNow()) > 0 }},
	{"two agents run", func(j *job) bool { return len(j.agentsNow()) > 1 }},
	{"the store listens", func(j *job) bool { return j.host() != 0 }},
	{"an agent is connected", func(j *job) bool {
		return slices.ContainsFunc(j.agentsNow(), func(pid int) bool { return connections(pid) > 0 })
	}},
	{"a watchdog runs", func(j *job) bool { return len(j.rdzvs()) > len(j.agentsNow()) }},
	{"a worker runs", func(j *job) bool { return count(filepath.Join(j.root, "job")) > 0 }},
}

func (f *field) killWhileJoining(t *testing.T, launcher string, hosts int, come func(j *job) bool) {
	j := f.startJob(t, launcher, hosts, []string{"--join-timeout", "3s", "--peer-timeout", "3s"}, actor("family", ""))
	if !eventually(waitLimit, func() bool { return come(j) }) {
		t.Fatal("the moment has not come")
	}
	agents := j.agentsNow()
	signalled := agents[len(agents)-1]
	parent := parentOf(signalled)
	if syscall.Kill(signalled, syscall.SIGKILL) != nil {
		t.Fatal("the agent has ended by itself")
	}
	if !eventually(20*time.Second, func() bool { return len(j.rdzvs()) == 0 }) {
		for _, pid := range j.rdzvs() {
			t.Errorf("process %d is still alive: %q", pid, commandLine(pid))
		}
	}
	j.launcherCodes()
	j.signalled[signalled], j.agents = syscall.SIGKILL, map[int]int{parent: signalled}
	want := []int{123, 124}
	if launcher == "openmpi" {
		want = append(want, 128+15) // mpirun ends the others before anybody misses the dead one
	}
	j.checkAgentCodes(want...)
	j.removeLeftovers()
}

// host is the agent that listens, guest one that does not.
func (j *job) host() int  { return j.firstAgent(true) }
func (j *job) guest() int { return j.firstAgent(false) }

func (j *job) firstAgent(hosting bool) int {
	for _, agent := range j.agentsNow() {
		if listens(agent) == hosting {
			return agent
		}
	}
	return 0
}

// agentsNow are the running rdzv exec, also those on hosts. A child of one is a fork that has not executed its program yet.
func (j *job) agentsNow() []int {
	return slices.DeleteFunc(j.rdzvs(), func(pid int) bool {
		return commandLine(pid)[0] != *rdzvBin || isRdzv(parentOf(pid))
	})
}

func (j *job) rdzvs() []int {
	return slices.DeleteFunc(j.tree(), func(pid int) bool { return !isRdzv(pid) })
}

func setOf(pids []int) map[int]bool {
	set := map[int]bool{}
	for _, pid := range pids {
		set[pid] = true
	}
	return set
}

// Node 2 loses its network while a job of each launcher runs: all of them end on node 1 within the peers' patience, and
// on node 2 too, for whom the store is lost.
func TestNodeCutOff(t *testing.T) {
	f := newField(t)
	var jobs []*job
	var beds []*exitWatch
	var workers, rdzvs []map[int]bool
	for _, launcher := range jobLaunchers {
		j := f.job(t, launcher, 2, []string{"--peer-timeout", "3s"}, actor("family"))
		w, r := j.kinds()
		jobs, workers, rdzvs = append(jobs, j), append(workers, w), append(rdzvs, r)
		beds = append(beds, watchExits(slices.Collect(maps.Keys(w)), slices.Collect(maps.Keys(r))))
		j.agents = j.agentsByParent()
	}
	began := time.Now()
	f.hosts("cut", "2")
	var table results
	for i, j := range jobs {
		beds[i].wait(15*time.Second, nil)
		defer beds[i].close()
		for pid := range beds[i].pidfds {
			t.Errorf("%s: process %d is still alive: %q", j.launcher, pid, commandLine(pid))
		}
		table.add(result{killCase: "node cut off", launcher: j.launcher, hosts: 2, survivors: len(beds[i].pidfds),
			workers: beds[i].last(began, workers[i]), all: beds[i].last(began, rdzvs[i]), codes: j.compareAgentCodes(123)})
	}
	t.Log("\n" + table.String())
	f.hosts("heal", "2")
	for _, j := range jobs { // the launchers may know nothing of it yet
		for _, pid := range j.tree() {
			kill(pid)
		}
		j.removeLeftovers()
	}
}
