package wrap

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestRunnerSurvives: a runner survives every signal except SIGKILL and SIGSTOP, and those that Go
// leaves to the C library.
func TestRunnerSurvives(t *testing.T) {
	nothingLeft(t)
	cmd, _ := startAgent(t, 1, nil)
	pid := runnerOf(t, cmd.Process.Pid)
	fatal := []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, 32, 33, 34}
	for s := syscall.Signal(1); s <= 64; s++ {
		if !slices.Contains(fatal, s) {
			syscall.Kill(pid, s)
		}
	}
	eventually(t, "the runner sleeps", func() bool {
		state, err := readState(pid)
		return err != nil || state == 'S'
	})
	if n := len(marked(marker(t))); dead(pid) || n < 10 {
		t.Errorf("the runner is dead: %v; %d processes of the tree run", dead(pid), n)
	}
}

// TestSeveralTrees: a runner runs trees one after another, with the same process.
func TestSeveralTrees(t *testing.T) {
	nothingLeft(t)
	r, err := StartRunner()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for code := range 20 {
		w := sh(t, "(setsid sleep 1000 &); exit $CODE")
		w.Env = append(w.Env, "CODE="+string(rune('0'+code%10)))
		results, err := r.Run(t.Context(), Tree{Workers: []Worker{w, w}})
		if err != nil || results[0].Code != code%10 || results[1].Code != code%10 {
			t.Fatalf("Run = %+v, %v, want code %d", results, err, code%10)
		}
		if left := r.Remaining(); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
	}
}

// TestRunnerDiesBetweenTrees: the death of a runner that runs nothing does not concern the other
// children of this process.
func TestRunnerDiesBetweenTrees(t *testing.T) {
	nothingLeft(t)
	r, err := StartRunner()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Run(t.Context(), Tree{Workers: []Worker{sh(t, "exit 0")}}); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(r.pid, syscall.SIGKILL)
	<-r.Lost()
	if state, err := readState(child.Process.Pid); err != nil || state == 'Z' {
		t.Errorf("another child is in state %c, %v", state, err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if _, err := r.Run(t.Context(), Tree{Workers: []Worker{sh(t, "exit 0")}}); err != ErrRunner {
		t.Errorf("Run: %v, want %v", err, ErrRunner)
	}
}

// TestClosedFile: a tree whose files are closed is not run.
func TestClosedFile(t *testing.T) {
	nothingLeft(t)
	closed, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	w := sh(t, "exit 0")
	w.Stdout = closed
	if results, err := Run(t.Context(), Tree{Workers: []Worker{w}}); err == nil || results != nil {
		t.Errorf("Run = %+v, %v, want an error", results, err)
	}
}

// TestRunnerCollectsGarbage: the memory of a runner does not grow with what it has done.
func TestRunnerCollectsGarbage(t *testing.T) {
	nothingLeft(t)
	r, err := StartRunner()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const total, most = 64 << 20, 100 << 20 // without, it has several copies of what it has read
	for read := 0; read < total; {
		text, err := r.ReadFile("/proc/self/smaps")
		if err != nil || len(text) == 0 {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		read += len(text)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	if n, err := strconv.Atoi(strings.Fields(peak)[0]); err != nil || n<<10 > most {
		t.Errorf("it had %d KiB, %v; want %d at most", n, err, most>>10)
	} else {
		t.Logf("it had %d KiB", n)
	}
}
