package wrap

import (
	"slices"
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
