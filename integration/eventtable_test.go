package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// relatives is a worker whose descendants are found by nothing but their pids: in other sessions,
// with parents that have ended, without an environment, and, if this user is root, as another one.
// All ignore SIGTERM.
const relatives = `trap "" TERM INT HUP QUIT USR1 USR2
sh -c 'sleep 1000 & wait' &
setsid sleep 1000 &
(setsid sh -c 'sleep 1000 & sleep 1000' &)
env -i setsid sleep 1000 &
(env -i setsid sh -c 'sleep 1000 & wait' &)
setpriv --reuid 65534 --regid 65534 --clear-groups sleep 1000 2> /dev/null &
sleep 1000 & wait; wait`

// An eventJob is a job of eventWorkers workers that have relatives.
type eventJob struct {
	*place
	podman *podman // in a container of which it runs, or nil
	around []int   // processes of the place that do not belong to it
}

const eventWorkers = 4

// An eventPlace is where the job of an event runs.
type eventPlace struct {
	name  string
	tasks bool // its agent has the workers of other tasks
	start func(t *testing.T, program []string) *eventJob
}

var eventPlaces = []eventPlace{
	{"no launcher", false, underLauncher(launchers[0])},
	{"openmpi", true, underLauncher(launchers[1])},
	{"hydra", true, underLauncher(launchers[2])},
	{"srun", true, underLauncher(launchers[3])},
	{"terminal", false, func(t *testing.T, program []string) *eventJob {
		term := newTerminal(t)
		j := &eventJob{place: term.place, around: term.tree()}
		term.typeKeys(quoted(direct(term.place, eventWorkers, frozenSoon, program)) + "\n")
		return j
	}},
	{"pid namespace", false, inNewPIDs},
	{"podman", false, func(t *testing.T, program []string) *eventJob {
		p := newPodman(t, false)
		flags := append([]string{"--nproc-per-node", strconv.Itoa(eventWorkers)}, frozenSoon...)
		p.start(p.run(nil, rdzvInside(flags, program))...)
		return &eventJob{place: p.place, podman: p}
	}},
}

// frozenSoon lets an agent that is stopped be killed soon, and workers that ignore SIGTERM.
var frozenSoon = []string{"--peer-timeout", "3s", "--grace", "1s"}

func underLauncher(l launcher) func(*testing.T, []string) *eventJob {
	return func(t *testing.T, program []string) *eventJob {
		p := l.place(t)
		j := &eventJob{place: p, around: p.tree()}
		p.start(l.command(p, eventWorkers, frozenSoon, program)...)
		return j
	}
}

// inNewPIDs starts a job in a pid namespace whose process 1 does not end with it, which would end
// everything in it.
func inNewPIDs(t *testing.T, program []string) *eventJob {
	p := newPlace(t)
	line := strings.Fields("unshare --pid --fork --mount-proc --kill-child")
	if os.Geteuid() != 0 {
		line = append(line, "--map-root-user")
	}
	script := `until [ -e start ]; do sleep 0.1; done; "$@" & sleep 1001`
	line = append(line, "sh", "-c", script, "sh")
	around := p.start(append(line, direct(p, eventWorkers, frozenSoon, program)...)...)
	t.Cleanup(func() { around.signal(syscall.SIGKILL) }) // before the place is checked
	if !eventually(waitLimit, func() bool { return len(p.tree()) >= 2 }) {
		t.Fatal("there is no process 1")
	}
	j := &eventJob{place: p, around: p.tree()}
	p.must(os.WriteFile(filepath.Join(p.root, "start"), nil, 0o600))
	return j
}

// all are the processes of the job, and its launcher.
func (j *eventJob) all() []int {
	pids := j.tree()
	if j.podman != nil {
		pids = append(pids, j.podman.contained()...)
		slices.Sort(pids)
		pids = slices.Compact(pids)
	}
	return slices.DeleteFunc(pids, func(pid int) bool {
		return slices.Contains(j.around, pid) || hasEnded(pid) || commandIs(pid, "sleep 1001")
	})
}

// contained are the processes in the containers, also those without the mark.
func (p *podman) contained() []int {
	namespace := func(pid string) string {
		name, _ := os.Readlink("/proc/" + pid + "/ns/pid")
		return name
	}
	inside := map[string]bool{}
	for _, pid := range p.marked() {
		inside[namespace(strconv.Itoa(pid))] = true
	}
	delete(inside, namespace("self"))
	delete(inside, "")
	return slices.DeleteFunc(allProcesses(), func(pid int) bool {
		return !inside[namespace(strconv.Itoa(pid))]
	})
}

func hasEnded(pid int) bool { return strings.Contains("XZ", stateOf(pid)) }

func commandIs(pid int, line string) bool { return strings.Join(commandLine(pid), " ") == line }

// sleepers are the descendants of workers that sleep.
func (j *eventJob) sleepers() []int {
	return slices.DeleteFunc(j.all(), func(pid int) bool { return !commandIs(pid, "sleep 1000") })
}

// wantSleepers is how many there are. A container has no setpriv.
func (j *eventJob) wantSleepers() int {
	if os.Geteuid() != 0 || j.podman != nil {
		return eventWorkers * 7
	}
	return eventWorkers * 8
}

// runners are that of the agent, or those of the other tasks.
func (j *eventJob) runners(ofAgent bool) []int {
	return slices.DeleteFunc(j.all(), func(pid int) bool {
		return commandLine(pid)[0] != "tree-runner" || isAgent(parentOf(pid)) != ofAgent
	})
}

// tasks are the agent, or the other tasks.
func (j *eventJob) tasks(agent bool) (pids []int) {
	for _, runner := range j.runners(agent) {
		pids = append(pids, parentOf(runner))
	}
	return pids
}

// worker is one of the agent's own task.
func (j *eventJob) worker() []int {
	runner := j.runners(true)[0]
	return slices.DeleteFunc(j.all(), func(pid int) bool {
		return parentOf(pid) != runner || !slices.Contains(commandLine(pid), relatives)
	})[:1]
}

// everything is all that runs, those that supervise first: they must not see that only some are
// stopped.
func (j *eventJob) everything() []int {
	pids := slices.Concat(j.runners(true), j.runners(false), j.tasks(true), j.tasks(false))
	above := slices.Clone(pids)
	for _, pid := range j.all() {
		for up := parentOf(pid); up > 1; up = parentOf(up) {
			if slices.Contains(above, up) && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// An event is a signal to processes of a job.
type event struct {
	name   string
	signal syscall.Signal
	where  eventWhere
	then   eventEnd
	to     func(j *eventJob) []int
}

// eventWhere says with how many tasks, and so agents, of a job an event is looked at.
type eventWhere int

const (
	anywhere eventWhere = iota
	severalTasks
	oneTask
)

type eventEnd int

const (
	jobEnds   eventEnd = iota // nothing is left of the job
	jobGoesOn                 // until its agent is killed
)

const (
	sigstop = syscall.SIGSTOP
	sigkill = syscall.SIGKILL
)

var events = []event{
	{"agent killed", sigkill, anywhere, jobEnds, (*eventJob).agent},
	{"agent stopped", sigstop, severalTasks, jobEnds, (*eventJob).agent},
	{"only agent stopped", sigstop, oneTask, jobGoesOn, (*eventJob).agent},
	{"task killed", sigkill, severalTasks, jobEnds, (*eventJob).aTask},
	{"task stopped", sigstop, severalTasks, jobEnds, (*eventJob).aTask},
	{"agent and tasks killed", sigkill, severalTasks, jobEnds, func(j *eventJob) []int {
		return append(j.tasks(false), j.tasks(true)...)
	}},
	{"runner killed", sigkill, anywhere, jobEnds, (*eventJob).agentsRunner},
	{"runner stopped", sigstop, anywhere, jobEnds, (*eventJob).agentsRunner},
	{"task's runner killed", sigkill, severalTasks, jobEnds, (*eventJob).aTasksRunner},
	{"task's runner stopped", sigstop, severalTasks, jobEnds, (*eventJob).aTasksRunner},
	{"runner and worker killed", sigkill, anywhere, jobEnds, func(j *eventJob) []int {
		return append(j.worker(), j.agentsRunner()...)
	}},
	{"worker killed", sigkill, anywhere, jobEnds, (*eventJob).worker},
	{"worker stopped", sigstop, anywhere, jobGoesOn, (*eventJob).worker},
	{"descendants stopped", sigstop, anywhere, jobGoesOn, (*eventJob).sleepers},
	{"all stopped", sigstop, anywhere, jobGoesOn, (*eventJob).everything},
}

func (j *eventJob) agent() []int        { return j.tasks(true) }
func (j *eventJob) aTask() []int        { return j.tasks(false)[:1] }
func (j *eventJob) agentsRunner() []int { return j.runners(true) }
func (j *eventJob) aTasksRunner() []int { return j.runners(false)[:1] }

// The table of events of package wrap, wherever a job runs: what dies or is stopped, and whether the
// job ends, and then all of it, whatever descendants its workers have.
func TestEventTable(t *testing.T) {
	t.Parallel()
	var all []variant
	for _, e := range events {
		for _, w := range eventPlaces {
			if e.where == severalTasks && !w.tasks || e.where == oneTask && w.tasks {
				continue
			}
			name := strings.ReplaceAll(e.name+"/"+w.name, " ", "_")
			all = append(all, variant{e.name, w.name, scenario{name, func(t *testing.T) {
				e.check(w.start(t, []string{"sh", "-c", relatives, "relatives"}))
			}}})
		}
	}
	runConcurrently(t, selected(all))
}

// stoppedFor is longer than an agent, a task or a runner may be stopped while workers run.
const stoppedFor = 5 * time.Second

func (e event) check(j *eventJob) {
	t := j.t
	t.Helper()
	var sleepers []int
	if !eventually(waitLimit, func() bool {
		sleepers = j.sleepers()
		return len(sleepers) == j.wantSleepers()
	}) {
		t.Fatalf("%d descendants sleep, want %d", len(sleepers), j.wantSleepers())
	}
	known, pids, agent := j.all(), e.to(j), j.agent()[0]
	for _, pid := range pids {
		if err := syscall.Kill(pid, e.signal); err != nil {
			t.Errorf("cannot send %v to %q: %v", e.signal, commandLine(pid), err)
		}
	}
	if e.then == jobGoesOn {
		time.Sleep(stoppedFor)
		slices.Reverse(pids) // the workers first
		for _, pid := range pids {
			_ = syscall.Kill(pid, cont)
		}
		time.Sleep(stoppedFor / 5)
		if got := len(j.sleepers()); got != len(sleepers) || hasEnded(agent) {
			t.Errorf("%d of %d descendants are left, the agent has ended: %t", got, len(sleepers),
				hasEnded(agent))
		}
		kill(agent)
	}
	j.checkNone(func() []int {
		return append(slices.DeleteFunc(slices.Clone(known), hasEnded), j.all()...)
	})
	for _, file := range j.files() { // agents that were killed did not
		j.must(os.RemoveAll(filepath.Join(j.root, file)))
	}
}
