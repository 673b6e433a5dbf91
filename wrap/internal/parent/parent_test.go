package parent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/waitid"
)

// roleEnv names what the test binary does in a test; executed as a runner it does what that test
// wants of a runner.
const roleEnv = "PARENT_TEST_ROLE"

func TestMain(m *testing.M) {
	switch {
	case os.Args[0] == Name:
		runner(os.Getenv(roleEnv))
	case os.Getenv(roleEnv) == "sweeper":
		sweeper()
	default:
		os.Exit(m.Run())
	}
}

// runner is the runner of a test: it ends with 0 when its socket does, or runs on.
func runner(role string) {
	fd, _ := strconv.Atoi(os.Args[1])
	switch role {
	case "leaves":
		cmd := exec.CommandContext(context.Background(), "sh", "-c",
			"sleep 1000 & sleep 1000 & echo ready; wait")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = out.Read(make([]byte, 1))
		}
		if err != nil {
			os.Exit(9)
		}
		_, _ = unix.Write(fd, []byte(strconv.Itoa(cmd.Process.Pid)))
		_ = cmd.Wait()
	default:
		_, _ = unix.Write(fd, []byte("ready"))
		_, _ = unix.Read(fd, make([]byte, 1))
	}
	os.Exit(0)
}

// start starts a runner. It returns what that writes first, and this end of its socket.
func start(t *testing.T, role string) (r *Runner, first string, socket int) {
	t.Helper()
	t.Setenv(roleEnv, role)
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err = Start(ends[1])
	unix.Close(ends[1])
	if err != nil {
		t.Fatal(err)
	}
	r.BeginTree()
	t.Cleanup(func() { r.Kill(); <-r.Done })
	b := make([]byte, 100)
	n, err := unix.Read(ends[0], b)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(b[:n]), ends[0]
}

// A runner that has ended by itself has left nothing.
func TestEnds(t *testing.T) {
	r, _, socket := start(t, "ends")
	unix.Close(socket)
	wait(t, r)
	if r.Died || len(r.Statuses)+len(r.Left) > 0 || r.Err != nil {
		t.Errorf("it has died: %t; %v, %v, %v", r.Died, r.Statuses, r.Left, r.Err)
	}
}

// What a runner that was killed has left is killed.
func TestKilled(t *testing.T) {
	r, first, socket := start(t, "leaves")
	defer unix.Close(socket)
	pid, _ := strconv.Atoi(first)
	r.Kill()
	wait(t, r)
	status, ended := r.Statuses[pid]
	if !r.Died || !ended || status.Signal() != syscall.SIGKILL || len(r.Statuses) != 3 {
		t.Errorf("it has died: %t; process %d ended: %t; %v", r.Died, pid, ended, r.Statuses)
	}
	if left, _ := procfs.Children(procfs.System, os.Getpid()); len(left) > 0 {
		t.Errorf("children left: %v", left)
	}
}

// What a runner that was killed has left can be killed before it is reaped, which can take long.
func TestKillBeforeReaping(t *testing.T) {
	t.Setenv(roleEnv, "leaves")
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	pid, err := execute(ends[1:])
	unix.Close(ends[1])
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{PID: pid}
	runners.pids[pid] = true
	r.BeginTree()
	_, err = unix.Read(ends[0], make([]byte, 100))
	if end := r.look(); err != nil || end != 0 {
		t.Errorf("it runs and has ended with %d, %v", end, err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	end := r.look()
	for ; end == 0; end = r.look() {
		time.Sleep(time.Millisecond)
	}
	left, err := r.kill()
	if p, _ := procfs.Read(procfs.System, pid); p.State != 'Z' || end == waitid.Exited {
		t.Errorf("its state is %c, its end %d, want a zombie that has not exited", p.State, end)
	}
	if len(left) == 0 || slices.Contains(left, pid) || err != nil {
		t.Errorf("it has left %v, %v", left, err)
	}
	for _, pid := range left {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.Signal() != syscall.SIGKILL {
			t.Errorf("what it has left ended with %v, %v", status, err)
		}
	}
	if status := r.reap(); status.Signal() != syscall.SIGKILL {
		t.Errorf("it has ended with %v", status)
	}
	r.sweep()
}

// A runner that is stopped, and not continued, is killed. Each time counts from the beginning.
func TestStopped(t *testing.T) {
	r, _, socket := start(t, "ends")
	defer unix.Close(socket)
	for range 3 {
		syscall.Kill(r.PID, syscall.SIGSTOP)
		time.Sleep(maxStopped / 2)
		syscall.Kill(r.PID, syscall.SIGCONT)
		time.Sleep(stopStep)
	}
	select {
	case <-r.Done:
		t.Fatal("a runner that was continued is killed")
	default:
	}
	syscall.Kill(r.PID, syscall.SIGSTOP)
	wait(t, r)
	if !r.Died {
		t.Error("it has ended by itself")
	}
}

// Other children of this process are no processes of the tree.
func TestUnrelated(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	r, _, socket := start(t, "leaves")
	defer unix.Close(socket)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.BeginTree()
	r.Kill()
	wait(t, r)
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another child: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// Descriptors without close-on-exec keep their numbers, whatever they are, and the sockets get others.
func TestDescriptors(t *testing.T) {
	var numbers []int
	for fd := 3; len(numbers) < 4; fd++ {
		if !isOpen(fd) {
			numbers = append(numbers, fd)
		}
	}
	for _, n := range numbers {
		if err := unix.Dup2(1, n); err != nil { // without close-on-exec
			t.Fatal(err)
		}
		defer unix.Close(n)
	}
	r, _, socket := start(t, "ends")
	defer unix.Close(socket)
	var own unix.Stat_t
	if err := unix.Fstat(1, &own); err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		var its unix.Stat_t
		err := unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", r.PID, n), &its)
		if err != nil || own.Ino != its.Ino || own.Dev != its.Dev {
			t.Errorf("descriptor %d of the runner: %v", n, err)
		}
	}
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.PID))
	words := strings.Split(string(line), "\x00")
	if fd, err := strconv.Atoi(words[1]); err != nil || words[0] != Name || slices.Contains(numbers, fd) {
		t.Errorf("its arguments are %q", line)
	}
}

func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

func wait(t *testing.T, r *Runner) {
	t.Helper()
	select {
	case <-r.Done:
	case <-time.After(20 * time.Second):
		t.Fatal("the runner has not ended after 20 s")
	}
}

// sweeper calls sweep while it cannot open files.
func sweeper() {
	cmd := exec.CommandContext(context.Background(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return
	}
	var limit unix.Rlimit
	_ = unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &limit)
	_ = unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}, nil)
	var r Runner
	r.sweep()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	fmt.Println(r.Err)
}

// sweep says so if it cannot list the children.
func TestSweepCannotListChildren(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"=sweeper")
	out, err := cmd.Output()
	want := fmt.Sprintf("cannot list the processes that the workers left: open %d/task: %s\n",
		cmd.Process.Pid, "too many open files")
	if err != nil || string(out) != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

func TestSubreaperError(t *testing.T) {
	const want = "cannot become a child subreaper: prctl(PR_SET_CHILD_SUBREAPER): invalid argument: " +
		"Linux has it since 3.4, qemu-user 7.2 does not"
	if err := subreaperError(unix.EINVAL); err.Error() != want || !errors.Is(err, unix.EINVAL) {
		t.Errorf("error %v, want %s", err, want)
	}
}
