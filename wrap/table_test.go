package wrap_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// TestTable goes through the table of events in doc.go: what dies, hangs or is stopped, and what
// follows. It knows of package wrap what its users know, and of the processes what /proc shows.
//
// Other tests have the rows: Lease is over, or revoked (TestLease); a pid namespace that cannot be
// ended by SIGTERM (pidns_test.go); Delivered, before and after a worker's start (TestStopDelivered,
// TestStopNotDelivered); a process survives SIGKILL (TestCannotKill); Owner (owner_test.go); a log
// that does not respond (TestHungLog); a start that hangs (TestHungExec); ctx ends between the starts
// of workers (TestEndBeforeStartAt); the Tree is not valid (TestInvalidTree).
func TestTable(t *testing.T) {
	// Processes of a tree that survive are then children of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { noChildren(t) })
	for _, r := range rows {
		t.Run(strings.ReplaceAll(r.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			if r.root && os.Geteuid() != 0 {
				t.Skip("only root can become another user, or mount")
			}
			r.check(t)
		})
	}
}

// noChildren checks that no process of any tree is left, whatever its environment is.
func noChildren(t *testing.T) {
	pids, _ := procfs.Children(procfs.System, os.Getpid())
	for _, pid := range pids {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
	pids, err := procfs.Children(procfs.System, os.Getpid())
	if err != nil || len(pids) > 0 {
		t.Errorf("the processes %v are left (%v)", pids, err)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}
}

// A row is an event in the life of a tree, and what follows. After it nothing of the tree is left.
type row struct {
	name    string
	proves  string // for a user
	tree    tree
	prepare func(*judge, *tree)
	event   func(*judge)  // when all workers are ready
	want    string        // what Run returns: see outcome; or which signal has ended the agent
	says    []string      // lines in this order, some time
	never   []string      // no line begins with one of these
	least   time.Duration // it takes this long from the event until nothing is left, at least
	most    time.Duration // and at most; 0 is limit
	then    func(*judge)  // checks what else follows
	root    bool          // needs root
	user    uint32        // the agent runs as this user; 0 is that of the test
}

func (r row) check(t *testing.T) {
	j := begin(t, r)
	defer func() {
		if t.Failed() {
			t.Logf("not shown: %s", r.proves)
		}
	}()
	j.tree()
	began := time.Now()
	r.event(j)
	if got := j.verdict(); got != r.want {
		t.Errorf("Run returned %q, want %q", got, r.want)
	}
	j.until("nothing is left", func() bool { return len(j.left()) == 0 })
	took, most := time.Since(began), r.most
	if most == 0 {
		most = limit
	}
	if took < r.least || took > most {
		t.Errorf("it took %v until nothing was left, want %v to %v", took, r.least, most)
	}
	j.checkSaid(r.says, append(r.never, "agent: processes left"))
	if r.then != nil {
		r.then(j)
	}
}

// What workers do. They wait for files that the judge creates.
const (
	// family leaves descendants that are found by nothing but their pids: with other sessions,
	// parents that have ended, and without an environment. Six of them sleep.
	family = `
sh -c 'sleep 1000 & wait' &
setsid sleep 1000 &
(setsid sh -c 'sleep 1000 & sleep 1000' &)
env -i setsid sleep 1000 &
(env -i setsid sh -c 'sleep 1000 & wait' &)
`
	familySize = 6
	// resistant ignores all signals that can be ignored, as its descendants do.
	resistant = `trap "" TERM INT HUP QUIT USR1 USR2 ABRT` + family + `echo ready; sleep 1000; sleep 1`
	// leaves ends when it may, its descendants do not.
	leaves = family + `echo ready; until [ -e leave ]; do sleep 0.02; done; exit 3`
	// leavesResistant leaves descendants that ignore SIGTERM.
	leavesResistant = `trap "" TERM` + leaves
	// goesOn ends when it may.
	goesOn = `echo ready; until [ -e go ]; do sleep 0.02; done; echo went on`
	// obeys dies of SIGTERM.
	obeys = `echo ready; exec sleep 1000`
	// saves ends some time after SIGTERM.
	saves = `trap 'echo saves; sleep 0.3; echo saved; exit 7' TERM; echo ready
while :; do sleep 0.02; done`
	// leavesSaving leaves a descendant that saves.
	leavesSaving = `sh -c "` + saves + `" & until [ -e leave ]; do sleep 0.02; done; exit 3`
	// prints prints a text when it gets SIGABRT, as Python's faulthandler prints stacks.
	prints  = `trap 'echo stacks; exit 4' ABRT; `
	ignores = `trap "" TERM; `
	forever = `echo ready; while :; do sleep 0.02; done`
)

const (
	never = time.Hour   // a time that does not come
	short = time.Second // one that does
	soon  = 15 * time.Second
)

func workers(scripts ...string) (all []program) {
	for _, s := range scripts {
		all = append(all, program{Script: s})
	}
	return all
}

// order is the event that a user of Run orders something.
func order(lines ...string) func(*judge) {
	return func(j *judge) {
		for _, line := range lines {
			j.order(line)
		}
	}
}

// lost is what Run returns for two workers when it has lost those that it supervises.
const lost = "SIGKILL, stopped, supervision lost; SIGKILL, stopped, supervision lost; " +
	"error: supervision lost"

var rows = []row{
	// A worker ends.
	{
		name:   "a worker exits",
		proves: "its code is returned, and its descendants and the other workers continue",
		tree:   tree{Workers: workers(leaves, goesOn), Grace: never},
		event: func(j *judge) {
			j.sleepers(familySize)
			j.create("leave")
			j.await("agent: ended 0 3")
			j.goesOn(short)
			j.sleepers(familySize)
			j.create("go")
		},
		want: "3; 0", says: []string{"agent: ended 0 3", "went on", "agent: ended 1 0"},
	},
	{
		name:   "a worker is killed",
		proves: "its signal is returned, and its descendants and the other workers continue",
		tree:   tree{Workers: workers(leaves, goesOn), Grace: never},
		event: func(j *judge) {
			j.sleepers(familySize)
			j.signal(syscall.SIGKILL, j.worker(0))
			j.await("agent: ended 0 SIGKILL")
			j.goesOn(short)
			j.sleepers(familySize)
			j.create("go")
		},
		want: "SIGKILL; 0", says: []string{"agent: ended 0 SIGKILL", "went on", "agent: ended 1 0"},
	},
	{
		name:   "the last worker ends, descendants obey",
		proves: "what the workers leave gets SIGTERM at once, in other sessions too",
		tree:   tree{Workers: workers(leaves), Grace: never},
		event:  func(j *judge) { j.sleepers(familySize); j.create("leave") },
		want:   "3", most: soon,
	},
	{
		name:   "the last worker ends, a descendant saves",
		proves: "what the workers leave may save something before it ends",
		tree:   tree{Workers: workers(leavesSaving), Grace: never},
		event:  func(j *judge) { j.create("leave") },
		want:   "3", says: []string{"agent: ended 0 3", "saved"}, most: soon,
	},
	{
		name:   "the last worker ends, descendants ignore SIGTERM",
		proves: "what the workers leave is killed after the grace, not before",
		tree:   tree{Workers: workers(leavesResistant), Grace: short},
		event:  func(j *judge) { j.sleepers(familySize); j.create("leave") },
		want:   "3", least: short,
	},
	{
		name:   "the last worker ends, with Linger",
		proves: "what the workers leave runs on until the caller wants its end",
		tree:   tree{Workers: workers(leavesSaving, leaves), Grace: never, Linger: true},
		event: func(j *judge) {
			j.sleepers(familySize)
			j.create("leave")
			j.until("both have ended", func() bool { return j.said("agent: ended ") == 2 })
			j.order("signal") // of which there is no receiver, but which Run takes
			j.goesOn(short)
			j.sleepers(familySize)
			j.order("end")
		},
		want: "3; 3", says: []string{`agent: has got "end"`, "saved"},
	},

	// ctx ends.
	{
		name:   "ctx ends, workers obey SIGTERM",
		proves: "workers get SIGTERM, and what they do about it is returned",
		tree:   tree{Workers: workers(obeys, saves), Grace: never},
		event:  order("end"),
		want:   "SIGTERM, stopped; 7, stopped", says: []string{"saves", "saved"}, most: soon,
	},
	{
		name:   "ctx ends, an ended worker has left a descendant",
		proves: "it gets SIGTERM together with the workers, and has the same grace",
		tree:   tree{Workers: workers(leavesSaving, obeys), Grace: never},
		event: func(j *judge) {
			j.create("leave")
			j.await("agent: ended 0 3")
			j.order("end")
		},
		want: "3; SIGTERM, stopped", says: []string{`agent: has got "end"`, "saved"}, most: soon,
	},
	{
		name:   "ctx ends, a worker saves with the help of a child",
		proves: "descendants of a worker do not get SIGTERM before it has ended",
		tree: tree{Grace: never, Workers: workers(`sh -c 'trap "echo child ends; exit" TERM
echo ready; while :; do sleep 0.02; done' & ` + saves)},
		event: func(j *judge) { j.await("ready"); j.order("end") },
		want:  "7, stopped", says: []string{"saves", "saved", "child ends"}, most: soon,
	},
	{
		name:   "ctx ends, a worker ignores SIGTERM and catches SIGABRT",
		proves: "it prints its stacks after the grace, once that has been announced",
		tree:   tree{Workers: workers(ignores + prints + forever), Grace: short},
		event:  order("end"),
		want:   "4, stopped", least: short,
		says: []string{`agent: has got "end"`, "agent: dumping 0, ignores SIGTERM: true", "stacks"},
	},
	{
		name:   "ctx ends, a worker survives SIGABRT",
		proves: "it is killed 0.5 s after it was to print its stacks, with its descendants",
		tree: tree{Grace: short,
			Workers: workers(ignores + `trap 'echo stacks' ABRT;` + family + forever)},
		event: func(j *judge) { j.sleepers(familySize); j.order("end") },
		want:  "SIGKILL, stopped", least: short + 500*time.Millisecond, says: []string{"stacks"},
	},
	{
		name:   "ctx ends, workers ignore all signals",
		proves: "they are killed with all their descendants after the grace, not before",
		tree:   tree{Workers: workers(resistant, resistant), Grace: short},
		event:  func(j *judge) { j.sleepers(2*familySize + 2); j.order("end") },
		want:   "SIGKILL, stopped; SIGKILL, stopped", least: short, never: []string{"agent: dumping"},
	},
	{
		name:   "ctx ends, no grace",
		proves: "all are killed at once, and print no stacks",
		tree:   tree{Workers: workers(resistant, ignores+prints+forever)},
		event:  func(j *judge) { j.sleepers(familySize + 1); j.order("end") },
		want:   "SIGKILL, stopped; SIGKILL, stopped", most: soon,
		never: []string{"agent: dumping", "stacks"},
	},
	{
		name:   "ctx has ended before",
		proves: "no worker is started",
		tree:   tree{Workers: workers("echo started", "echo started"), Ended: true},
		event:  func(*judge) {},
		want:   "SIGTERM, stopped, not started; SIGTERM, stopped, not started",
		never:  []string{"started", "agent: started"},
	},
	{
		name:   "ctx ends, SIGTERM was delivered",
		proves: "a worker that has got the SIGTERM of a launcher does not get another one",
		tree: tree{Grace: never, Workers: workers(`trap 'n=x$n; echo SIGTERM $n' TERM; echo ready
until [ -e go ]; do sleep 0.02; done; sleep 0.3; exit 7`)},
		event: func(j *judge) {
			j.signal(syscall.SIGTERM, j.worker(0))
			j.await("SIGTERM x")
			j.order("end delivered")
			j.create("go")
		},
		want: "7, stopped", never: []string{"SIGTERM xx"},
	},
	{
		name:   "ctx ends, with stacks",
		proves: "a worker that catches SIGABRT gets it instead of SIGTERM, at once",
		tree:   tree{Grace: never, Workers: workers(`trap 'echo SIGTERM' TERM;`+prints+forever, obeys)},
		event:  order("end stacks"),
		want:   "4, stopped; SIGTERM, stopped", says: []string{"stacks"}, never: []string{"SIGTERM"},
		most: soon,
	},
	{
		name:   "stacks are asked for",
		proves: "only a worker that ignores SIGTERM and catches SIGABRT gets it, and Run goes on",
		tree: tree{Grace: never, Workers: workers(ignores+prints+forever,
			`trap 'echo other stacks' ABRT; trap 'echo SIGTERM' TERM; `+goesOn)},
		event: func(j *judge) {
			j.order("stacks")
			j.await("agent: ended 0 4, stopped")
			j.goesOn(short)
			j.create("go")
		},
		want: "4, stopped; 0", never: []string{"SIGTERM", "other stacks"},
		says: []string{"agent: dumping 0, ignores SIGTERM: true", "stacks", "went on"},
	},
	{
		name:   "kill",
		proves: "a second Ctrl-C kills all without grace",
		tree:   tree{Workers: workers(resistant, saves), Grace: never},
		event:  func(j *judge) { j.sleepers(familySize + 1); j.order("kill") },
		want:   "SIGKILL, stopped; SIGKILL, stopped", never: []string{"saves"}, most: soon,
	},
	{
		name:   "kill in the grace",
		proves: "a second Ctrl-C kills what has ignored the first",
		tree:   tree{Workers: workers(resistant), Grace: never},
		event: func(j *judge) {
			j.sleepers(familySize + 1)
			j.order("end")
			j.goesOn(short)
			j.order("kill")
		},
		want: "SIGKILL, stopped", most: soon,
	},

	// The agent ends, or is stopped.
	{
		name:   "the agent is killed",
		proves: "nothing is left, whatever its workers and their descendants do",
		tree:   tree{Workers: workers(resistant, saves), Grace: never},
		event:  func(j *judge) { j.sleepers(familySize + 1); j.signal(syscall.SIGKILL, j.agent.Process.Pid) },
		want:   "agent SIGKILL", most: soon,
	},
	{
		name:   "the process group of the agent is killed",
		proves: "a launcher that kills what it has started leaves nothing",
		tree:   tree{Workers: workers(resistant, saves), Grace: never},
		event: func(j *judge) {
			j.sleepers(familySize + 1)
			j.signal(syscall.SIGKILL, -j.agent.Process.Pid)
		},
		want: "agent SIGKILL", most: soon,
	},
	{
		name:   "the agent is killed in the grace",
		proves: "nothing is left although workers have time to end",
		tree:   tree{Workers: workers(resistant, `trap 'echo SIGTERM' TERM;`+forever), Grace: never},
		event: func(j *judge) {
			j.sleepers(familySize + 1)
			j.order("end")
			j.await("SIGTERM")
			j.signal(syscall.SIGKILL, j.agent.Process.Pid)
		},
		want: "agent SIGKILL", most: soon,
	},
	{
		name:   "the agent is killed, workers have ended",
		proves: "nothing is left of what lingers",
		tree:   tree{Workers: workers(leavesResistant), Grace: never, Linger: true},
		event: func(j *judge) {
			j.sleepers(familySize)
			j.create("leave")
			j.await("agent: ended 0 3")
			j.signal(syscall.SIGKILL, j.agent.Process.Pid)
		},
		want: "agent SIGKILL", most: soon,
	},
	{
		name:   "the agent is killed, with a log",
		proves: "what a worker has written before is in its log",
		tree: tree{Grace: never, Workers: []program{{Log: "log", Script: `echo ready >&2
until [ -e go ]; do sleep 0.02; done
i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; : > wrote; sleep 1000`}}},
		event: func(j *judge) {
			j.create("go")
			j.until("the worker has written", j.has("wrote"))
			j.signal(syscall.SIGKILL, j.agent.Process.Pid)
		},
		want: "agent SIGKILL", most: soon,
		then: func(j *judge) {
			text, err := os.ReadFile(filepath.Join(j.dir, "log"))
			if n := strings.Count(string(text), "\nline "); n != 2000 {
				j.t.Errorf("the log has %d lines (%v), want 2000", n, err)
			}
		},
	},
	{
		name:   "the agent is stopped alone",
		proves: "it is killed with its tree after FrozenLimit",
		tree:   tree{Workers: workers(resistant, saves), Grace: never, FrozenLimit: short},
		event: func(j *judge) {
			j.sleepers(familySize + 1)
			j.signal(syscall.SIGSTOP, j.agent.Process.Pid)
		},
		want: "agent SIGKILL", least: short / 2,
	},
	{
		name:   "the agent is stopped together with the workers",
		proves: "a job may be suspended for any time, as by Ctrl-Z",
		tree:   tree{Workers: workers(goesOn, goesOn), Grace: never, FrozenLimit: short},
		event: func(j *judge) {
			pids := []int{j.worker(0), j.worker(1), j.agent.Process.Pid}
			j.signal(syscall.SIGSTOP, pids...)
			j.goesOn(4 * short)
			j.stopped(pids...)
			j.create("go")
			j.signal(syscall.SIGCONT, pids...)
		},
		want: "0; 0", least: 4 * short,
	},
	{
		name:   "all processes are stopped",
		proves: "a job may be suspended for any time, as by Slurm or in a container",
		tree:   tree{Workers: workers(goesOn, goesOn), Grace: never, FrozenLimit: short},
		event: func(j *judge) {
			stopAll(j, 4*short)
			j.create("go")
		},
		want: "0; 0", least: 4 * short,
	},

	// The lease is over while everything is stopped. Who is continued first is left to chance.
	{
		name:   "the lease is over while all are stopped, the agent goes on first",
		proves: "workers whose agent renews the lease run on, however late that is",
		tree: tree{Workers: workers(goesOn, family+goesOn), Grace: never, FrozenLimit: short,
			Leased: leaseTime},
		event: func(j *judge) {
			stopped := stopPastLease(j)
			j.signal(syscall.SIGCONT, j.agent.Process.Pid)
			j.order("renew")
			j.signal(syscall.SIGCONT, stopped...)
			j.create("go")
		},
		want: "0; 0", says: []string{"went on", "went on"}, least: leaseTime,
	},
	{
		name:   "the lease is over while all are stopped, the process between goes on first",
		proves: "workers do not run before their agent has renewed the lease, and then they do",
		tree: tree{Workers: workers(goesOn, family+goesOn), Grace: never, FrozenLimit: short,
			Leased: leaseTime},
		event: func(j *judge) {
			stopped := stopPastLease(j)
			j.signal(syscall.SIGCONT, stopped[0])
			j.goesOn(2 * short) // the agent is stopped alone, but nothing else runs
			j.signal(syscall.SIGCONT, stopped[1:]...)
			j.rest(stopped[1:]...)
			j.create("go")
			j.signal(syscall.SIGCONT, j.agent.Process.Pid)
			j.goesOn(short)
			j.order("renew")
		},
		want: "0; 0", says: []string{`agent: has got "renew"`, "went on", "went on"}, least: leaseTime,
	},
	{
		name:   "the lease is over while all are stopped, the workers go on first",
		proves: "they and their descendants are stopped, until the agent knows that they are to end",
		tree: tree{Workers: workers(resistant, goesOn), Grace: never, FrozenLimit: short,
			Leased: leaseTime},
		event: func(j *judge) {
			stopped := stopPastLease(j)
			j.signal(syscall.SIGCONT, stopped[1:]...)
			j.signal(syscall.SIGCONT, stopped[0])
			j.rest(stopped[1:]...)
			j.create("go")
			j.signal(syscall.SIGCONT, j.agent.Process.Pid)
			j.goesOn(short)
			j.order("revoke")
		},
		want: "SIGKILL, stopped; SIGKILL, stopped", never: []string{"went on"}, least: leaseTime,
	},

	// The process between agent and workers ends, or is stopped.
	{
		name:   "the process between is killed",
		proves: "all workers and their descendants are killed, and Run says why",
		tree:   tree{Workers: workers(resistant, saves), Grace: never},
		event:  func(j *judge) { j.sleepers(familySize + 1); j.signal(syscall.SIGKILL, j.between()) },
		want:   lost, most: soon,
	},
	{
		name:   "the process between is killed in the grace",
		proves: "nothing is left although workers have time to end",
		tree:   tree{Workers: workers(resistant, `trap 'echo SIGTERM' TERM;`+forever), Grace: never},
		event: func(j *judge) {
			j.sleepers(familySize + 1)
			between := j.between()
			j.order("end")
			j.await("SIGTERM")
			j.signal(syscall.SIGKILL, between)
		},
		want: lost, most: soon,
	},
	{
		name:   "the process between is killed, a worker has ended",
		proves: "what the worker has left is killed too, and its result stays",
		tree:   tree{Workers: workers(saves, leavesResistant), Grace: never},
		event: func(j *judge) {
			j.sleepers(familySize)
			between := j.between()
			j.create("leave")
			j.await("agent: ended 1 3")
			j.signal(syscall.SIGKILL, between)
		},
		want: "SIGKILL, stopped, supervision lost; 3; error: supervision lost", most: soon,
	},
	{
		name:   "the process between is stopped",
		proves: "after 2 s all are killed, and Run says why",
		tree:   tree{Workers: workers(resistant, saves), Grace: never},
		event:  func(j *judge) { j.sleepers(familySize + 1); j.signal(syscall.SIGSTOP, j.between()) },
		want:   lost, least: short,
	},

	{
		name:   "the process group of the process between is killed",
		proves: "all workers and their descendants are killed, and Run says why",
		tree:   tree{Workers: workers(resistant, saves), Grace: never},
		event: func(j *judge) {
			j.sleepers(familySize + 1)
			group, err := unix.Getpgid(j.between())
			if err != nil || group == j.agent.Process.Pid || group == j.worker(0) {
				j.t.Fatalf("it is in process group %d (%v), that of the agent or of a worker", group, err)
			}
			j.signal(syscall.SIGKILL, -group)
		},
		want: lost, most: soon,
	},
	{
		name:   "the process between gets all signals",
		proves: "who signals every process, as Slurm does, does not end the supervision",
		tree:   tree{Workers: workers(goesOn, goesOn), Grace: never},
		event: func(j *judge) {
			between := j.between()
			for s := syscall.Signal(1); s <= 64; s++ {
				// The last three belong to the C library and the Go runtime.
				own := []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, 32, 33, 34}
				if !slices.Contains(own, s) {
					j.signal(s, between)
				}
			}
			j.goesOn(short)
			j.create("go")
		},
		want: "0; 0",
	},

	// A worker cannot be started.
	{
		name:   "programs that cannot be started",
		proves: "the others run; the code is that of a shell",
		tree: tree{Grace: never, Workers: []program{
			{Path: "/nowhere"}, {Path: "not-executable"}, {Path: "no-interpreter"}, {Path: "/"},
			{Script: goesOn},
		}},
		prepare: func(j *judge, _ *tree) {
			j.create("not-executable")
			file := filepath.Join(j.dir, "no-interpreter")
			if err := os.WriteFile(file, []byte("#!/nowhere/sh\n"), 0o700); err != nil {
				j.t.Fatal(err)
			}
		},
		event: func(j *judge) { j.create("go") },
		want: "127, not started, no such file or directory; 126, not started, permission denied; " +
			"127, not started, no such file or directory; 126, not started, permission denied; 0",
		says: []string{"went on"},
	},

	// A log.
	{
		name:   "the log is full",
		proves: "it is given up with a reason; the worker goes on, and its output is shown",
		tree:   tree{Grace: never, Workers: []program{{Script: goesOn, Log: "/dev/full"}}},
		event:  func(j *judge) { j.goesOn(short / 2); j.create("go") },
		want:   "0",
		says: []string{"agent: log of 0 lost: no space left on device, some bytes: false",
			"went on", "agent: log of 0 lost: no space left on device, some bytes: true"},
	},
	{
		name:   "the file system of the log is full",
		proves: "the log has what there was room for",
		tree: tree{Grace: never, Workers: []program{{Log: "small/log", Script: `echo ready
until [ -e go ]; do sleep 0.02; done
i=0; while [ $i -lt 10000 ]; do echo line $i; i=$((i+1)); done; echo went on`}}},
		root: true,
		prepare: func(j *judge, _ *tree) {
			small := filepath.Join(j.dir, "small")
			err := os.Mkdir(small, 0o700)
			if err == nil {
				err = unix.Mount("test", small, "tmpfs", 0, "size=32k")
			}
			if err != nil {
				j.t.Skipf("cannot mount a file system: %v", err)
			}
			j.t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
		},
		event: func(j *judge) { j.create("go") },
		want:  "0",
		says: []string{"agent: log of 0 lost: no space left on device, some bytes: false",
			"agent: log of 0 lost: no space left on device, some bytes: true"},
		then: func(j *judge) {
			j.checkSaid([]string{"line 9999", "went on"}, nil)
			text, err := os.ReadFile(filepath.Join(j.dir, "small/log"))
			if n := strings.Count(string(text), "\nline "); n < 1000 || n == 10000 {
				j.t.Errorf("the log has %d lines (%v), want 1000 or more, not all", n, err)
			}
		},
	},
	// Other users.
	{
		name:   "the agent of another user is killed",
		proves: "nothing is left without any privilege",
		tree:   tree{Workers: workers(resistant, saves), Grace: never},
		root:   true, user: nobody,
		event: func(j *judge) { j.sleepers(familySize + 1); j.signal(syscall.SIGKILL, j.agent.Process.Pid) },
		want:  "agent SIGKILL", most: soon,
	},
	{
		name:   "the process between of another user is killed",
		proves: "nothing is left without any privilege",
		tree:   tree{Workers: workers(resistant, saves), Grace: never},
		root:   true, user: nobody,
		event: func(j *judge) { j.sleepers(familySize + 1); j.signal(syscall.SIGKILL, j.between()) },
		want:  lost, most: soon,
	},
	{
		name:   "a worker becomes another user, the agent is killed",
		proves: "what has dropped its privileges is found and killed",
		tree:   tree{Workers: workers(drops), Grace: never},
		root:   true,
		event:  func(j *judge) { j.sleepers(familySize + 1); j.signal(syscall.SIGKILL, j.agent.Process.Pid) },
		want:   "agent SIGKILL", most: soon,
	},
	{
		name:   "a worker becomes another user, the process between is killed",
		proves: "what has dropped its privileges, and so does not die with its parent, is killed",
		tree:   tree{Workers: workers(drops, saves), Grace: never},
		root:   true,
		event:  func(j *judge) { j.sleepers(familySize + 1); j.signal(syscall.SIGKILL, j.between()) },
		want:   lost, most: soon,
	},
}

const nobody = 65534

// drops becomes another user, and then is resistant.
const drops = `exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -c '` +
	`trap "" TERM INT HUP QUIT USR1 USR2 ABRT
sh -c "sleep 1000 & wait" &
setsid sleep 1000 &
(setsid sh -c "sleep 1000 & sleep 1000" &)
env -i setsid sleep 1000 &
(env -i setsid sh -c "sleep 1000 & wait" &)
echo ready; sleep 1000; sleep 1'`

// stopAll stops all processes for a time, and continues them, the workers first.
func stopAll(j *judge, d time.Duration) {
	j.t.Helper()
	all := append([]int{j.agent.Process.Pid}, stopEverything(j)...)
	j.goesOn(d)
	slices.Reverse(all)
	j.signal(syscall.SIGCONT, all...)
}

// stopEverything stops the agent and all processes of the tree, which it returns, the process
// between first. Those that supervise are stopped first: they must not see that only some are.
func stopEverything(j *judge) []int {
	j.t.Helper()
	all := []int{j.between()}
	j.signal(syscall.SIGSTOP, all[0], j.agent.Process.Pid)
	j.until("all processes of the tree are stopped", func() bool { // some may be starting others
		done := true
		for _, pid := range j.tree() {
			if !rests(pid) {
				done = false
				j.signal(syscall.SIGSTOP, pid)
				all = append(all, pid)
			}
		}
		return done && rests(j.agent.Process.Pid)
	})
	return all
}

// leaseTime is longer than a busy machine needs until all are stopped, and a sixth of it longer than
// the runner needs until it has a lease.
const leaseTime = 9 * time.Second

// stopPastLease stops everything, as stopEverything does, until the lease is over.
func stopPastLease(j *judge) []int {
	j.t.Helper()
	j.order("lease")
	j.goesOn(leaseTime / 6) // what has just got a lease does not notice that it is stopped
	all := stopEverything(j)
	j.goesOn(leaseTime + short)
	return all
}
