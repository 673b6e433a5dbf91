package wrap_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/wrap"
)

// limit is how long the judge waits for anything, also on a busy machine.
const limit = 30 * time.Second

// A judge starts an agent, does something to its tree, and sees what follows. It knows of the tree
// only what /proc shows.
type judge struct {
	t     *testing.T
	dir   string // the working directory of all processes
	mark  string
	agent *exec.Cmd
	stdin *os.File
	lines chan string
	seen  []string       // lines that have been read
	known map[int]uint64 // start times of all processes of the tree that were seen, by pid
	ended chan struct{}  // closed when the agent has ended
}

// begin starts an agent, in a process group of its own as a launcher does, and waits until each
// worker has printed "ready".
func begin(t *testing.T, r row) *judge {
	t.Helper()
	j := &judge{t: t, dir: t.TempDir(), lines: make(chan string, 1<<16), ended: make(chan struct{}),
		known: map[int]uint64{}}
	j.mark = fmt.Sprintf("%s@%d", t.Name(), os.Getpid())
	j.start(r)
	for _, p := range r.tree.Workers {
		if strings.Contains(p.Script, "echo ready") {
			j.await("ready")
		}
	}
	return j
}

func (j *judge) start(r row) {
	j.t.Helper()
	if r.prepare != nil {
		r.prepare(j, &r.tree)
	}
	text, err := json.Marshal(r.tree)
	if err != nil {
		j.t.Fatal(err)
	}
	stdin, order := pipe(j.t)
	out, in := pipe(j.t)
	j.stdin = order
	j.agent = exec.Command("/proc/self/exe")
	j.agent.Env = []string{
		wrap.RoleEnv + "=" + tableAgent, wrap.MarkerEnv + "=" + j.mark, treeEnv + "=" + string(text),
		"PATH=" + os.Getenv("PATH"),
	}
	j.agent.Dir = j.dir
	j.agent.Stdin, j.agent.Stdout, j.agent.Stderr = stdin, in, in
	j.agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if r.user != 0 {
		j.become(r.user)
	}
	if err := j.agent.Start(); err != nil {
		j.t.Fatal(err)
	}
	stdin.Close()
	in.Close()
	go func() {
		defer close(j.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			j.lines <- s.Text()
		}
	}()
	go func() { defer close(j.ended); _ = j.agent.Wait() }()
	j.t.Cleanup(func() { j.close(out) })
}

// become runs the agent as another user.
func (j *judge) become(user uint32) {
	j.t.Helper()
	j.agent.Path = wrap.TestBinary(j.t)
	j.agent.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
	j.dir = filepath.Dir(j.agent.Path)
	j.agent.Dir = j.dir
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// close kills what is left, which the test has reported.
func (j *judge) close(out *os.File) {
	for _, pid := range j.left() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-j.ended
	j.stdin.Close()
	out.Close()
	for line := range j.lines {
		j.seen = append(j.seen, line)
	}
	if j.t.Failed() {
		j.t.Logf("it has printed:\n%s", strings.Join(j.seen, "\n"))
	}
}

// await waits for a line, and keeps those before.
func (j *judge) await(line string) {
	j.t.Helper()
	late := time.After(limit)
	for {
		select {
		case got, ok := <-j.lines:
			if !ok {
				j.t.Fatalf("no line %q: end of the output", line)
			}
			j.seen = append(j.seen, got)
			if got == line {
				return
			}
		case <-late:
			j.t.Fatalf("no line %q within %v", line, limit)
		}
	}
}

// until waits for a condition.
func (j *judge) until(what string, is func() bool) {
	j.t.Helper()
	for late := time.Now().Add(limit); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			j.t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// order writes a line to the agent, which has read it when order returns.
func (j *judge) order(line string) {
	j.t.Helper()
	if _, err := fmt.Fprintln(j.stdin, line); err != nil {
		j.t.Fatal(err)
	}
	j.await(fmt.Sprintf("agent: has got %q", line))
}

// create creates a file in the directory of the tree, for which a worker waits.
func (j *judge) create(name string) {
	j.t.Helper()
	if err := os.WriteFile(filepath.Join(j.dir, name), nil, 0o600); err != nil {
		j.t.Fatal(err)
	}
}

func (j *judge) has(name string) func() bool {
	return func() bool { _, err := os.Stat(filepath.Join(j.dir, name)); return err == nil }
}

// worker is the pid of worker i.
func (j *judge) worker(i int) int {
	j.t.Helper()
	prefix, pid := fmt.Sprintf("agent: started %d ", i), 0
	for j.drain(); pid == 0; j.drain() {
		for _, line := range j.seen {
			if text, found := strings.CutPrefix(line, prefix); found {
				pid, _ = strconv.Atoi(text)
			}
		}
	}
	return pid
}

// drain reads the lines that there are.
func (j *judge) drain() {
	for {
		select {
		case line, ok := <-j.lines:
			if !ok {
				return
			}
			j.seen = append(j.seen, line)
		default:
			return
		}
	}
}

// said counts the lines that begin with a text.
func (j *judge) said(text string) (n int) {
	j.drain()
	for _, line := range j.seen {
		if strings.HasPrefix(line, text) {
			n++
		}
	}
	return n
}

// between is the process between the agent and its workers: the parent of the workers, which is a
// child of the agent.
func (j *judge) between() int {
	j.t.Helper()
	worker := j.worker(0)
	parent, err := procfs.Read(procfs.System, worker)
	if err != nil {
		j.t.Fatal(err)
	}
	above, err := procfs.Read(procfs.System, parent.Parent)
	if err != nil || above.Parent != j.agent.Process.Pid {
		j.t.Fatalf("the parent of worker %d is process %d, a child of %d (%v), want of agent %d", worker,
			parent.Parent, above.Parent, err, j.agent.Process.Pid)
	}
	return parent.Parent
}

func (j *judge) signal(s syscall.Signal, pids ...int) {
	j.t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
			j.t.Fatalf("cannot send %v to %d: %v", s, pid, err)
		}
	}
}

// tree lists the processes of the tree, without the agent: its descendants, and those with the mark
// that have lost it. It remembers them, for left.
func (j *judge) tree() []int {
	found := map[int]bool{}
	var walk func(pid int)
	walk = func(pid int) {
		children, _ := procfs.Children(procfs.System, pid)
		for _, child := range children {
			if !found[child] {
				found[child] = true
				walk(child)
			}
		}
	}
	if !hasEnded(j.agent.Process.Pid) {
		walk(j.agent.Process.Pid)
	}
	for _, p := range wrap.Marked(j.mark) {
		found[p.PID] = true
	}
	delete(found, j.agent.Process.Pid)
	for pid := range found {
		if p, err := procfs.Read(procfs.System, pid); err == nil {
			j.known[pid] = p.Start
		} else {
			delete(found, pid)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// left lists what runs of the agent and its tree, also without the mark.
func (j *judge) left() (pids []int) {
	j.tree()
	for pid, start := range j.known {
		p, err := procfs.Read(procfs.System, pid)
		if err == nil && p.Start == start && !hasEnded(pid) {
			pids = append(pids, pid)
		}
	}
	select {
	case <-j.ended:
	default:
		pids = append(pids, j.agent.Process.Pid)
	}
	return pids
}

// sleepers waits until the tree has n processes that run sleep for ever.
func (j *judge) sleepers(n int) {
	j.t.Helper()
	count := 0
	j.until(fmt.Sprintf("%d processes sleep", n), func() bool {
		count = 0
		for _, pid := range j.tree() {
			if slices.Equal(procfs.Arguments(procfs.System, pid), []string{"sleep", "1000"}) {
				count++
			}
		}
		return count == n
	})
}

// stopped waits until all of these are stopped.
func (j *judge) stopped(pids ...int) {
	j.t.Helper()
	j.until("all are stopped", func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return !procfs.IsStopped(procfs.System, pid) })
	})
}

// rest waits until each of these is stopped, or has ended.
func (j *judge) rest(pids ...int) {
	j.t.Helper()
	j.until("none runs", func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return !rests(pid) })
	})
}

// rests tells whether a process does nothing: also not in vfork(2), whose child is stopped.
func rests(pid int) bool {
	p, err := procfs.Read(procfs.System, pid)
	return err != nil || strings.ContainsRune("TZXD", rune(p.State))
}

// hasEnded tells whether a process has ended, also if its parent has not waited for it.
func hasEnded(pid int) bool {
	p, err := procfs.Read(procfs.System, pid)
	return err != nil || p.State == 'Z' || p.State == 'X'
}

// goesOn fails the test if Run returns, or the agent ends, within a time.
func (j *judge) goesOn(d time.Duration) {
	j.t.Helper()
	select {
	case <-j.ended:
		j.t.Fatalf("the agent has ended: %v", j.agent.ProcessState)
	case <-time.After(d):
	}
	if j.said(returned) > 0 {
		j.t.Fatal("Run has returned")
	}
}

func isReturned(line string) bool { return strings.HasPrefix(line, returned) }

const returned = "agent: returned "

// verdict is what Run has returned, or which signal has ended the agent.
func (j *judge) verdict() string {
	j.t.Helper()
	select {
	case <-j.ended:
	case <-time.After(limit):
		j.t.Fatalf("the agent has not ended within %v", limit)
	}
	status := j.agent.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return "agent " + unix.SignalName(status.Signal())
	}
	j.until("Run has returned", func() bool { return j.said(returned) > 0 })
	line := j.seen[slices.IndexFunc(j.seen, isReturned)]
	j.checkEnded(strings.Split(strings.TrimPrefix(line, returned), "; "))
	return strings.TrimPrefix(line, returned)
}

// checkEnded checks that Ended was called once for each worker, with the result that Run returns.
func (j *judge) checkEnded(outcomes []string) {
	j.t.Helper()
	for i, want := range outcomes {
		var got []string
		for _, line := range j.seen {
			if text, found := strings.CutPrefix(line, fmt.Sprintf("agent: ended %d ", i)); found {
				got = append(got, text)
			}
		}
		if !strings.HasPrefix(want, "error: ") && !slices.Equal(got, []string{want}) {
			j.t.Errorf("Ended was called for worker %d with %q, want once, %q", i, got, want)
		}
	}
}

// checkSaid checks that these lines were printed in this order, and that none of the others was.
func (j *judge) checkSaid(want, never []string) {
	j.t.Helper()
	j.drain()
	rest := j.seen
	for _, line := range want {
		at := slices.Index(rest, line)
		if at < 0 {
			j.t.Errorf("the line %q is missing, or comes too early", line)
			continue
		}
		rest = rest[at+1:]
	}
	for _, line := range never {
		if j.said(line) > 0 {
			j.t.Errorf("there is a line %q", line)
		}
	}
}
