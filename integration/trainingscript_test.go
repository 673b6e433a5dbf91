package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"rdzv/internal/pagetest"
)

// The program of the page about training scripts continues from its snapshots, and ends with the
// result of a training that was not interrupted.
func TestTrainingScript(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			s := newScriptPlace(t, workers)
			undisturbed := s.train()
			undisturbed.checkCode(0)
			s.want = undisturbed.linesWith("step 200: ")
			if len(s.want) != 1 {
				t.Fatalf("the training ended with %q", s.want)
			}
			s.killed()
			s.terminated()
		})
	}
}

// A scriptPlace has the program of the page in train.py. Its snapshots are in the place's directory.
type scriptPlace struct {
	*place
	workers int
	want    []string // the last line of a training
}

func newScriptPlace(t *testing.T, workers int) *scriptPlace {
	t.Helper()
	s := &scriptPlace{place: newPlace(t), workers: workers}
	page, err := os.ReadFile("../docs/start/training-script.md")
	s.must(err)
	s.write(filepath.Join(s.root, "train.py"), fileOf(t, string(page), "train.py"), 0o600)
	return s
}

// fileOf is the text of a file that a page shows.
func fileOf(t *testing.T, page, name string) string {
	t.Helper()
	for _, b := range pagetest.Blocks(page) {
		if b.File == name {
			return b.Text
		}
	}
	t.Fatalf("the page does not show a file %q", name)
	return ""
}

// train starts the program, or a line that runs it, with one restart.
func (s *scriptPlace) train(interruption ...string) *process {
	s.t.Helper()
	program := slices.Concat([]string{python}, interruption, []string{"train.py"})
	// torch 2.6 leaves temporary files when it is killed.
	program = append([]string{"env", "TMPDIR=" + s.dir("data")}, program...)
	return s.startWith([]string{"OMP_NUM_THREADS=1"},
		direct(s.place, s.workers, []string{"--max-restarts", "1", "--grace", "2s"}, program)...)
}

func (s *scriptPlace) checkContinued(job *process, from string) {
	s.t.Helper()
	job.checkCode(0)
	if n := len(job.linesWith("continuing from snapshots/" + from)); n != 1 {
		s.t.Errorf("it has continued %d times from %s, want once", n, from)
	}
	if got := job.linesWith("step 200: "); !slices.Equal(got, s.want) {
		s.t.Errorf("it ended with %q, want %q", got, s.want)
	}
}

func (s *scriptPlace) killed() {
	s.t.Helper()
	s.must(os.RemoveAll(filepath.Join(s.root, "snapshots")))
	job := s.train(filepath.Join(testbed, "atstep.py"), "kill", "50")
	s.checkContinued(job, "step-000000040-attempt-0.pt")
	if n := len(job.linesWith("(restart 1 of 1)")); n != 1 {
		s.t.Errorf("the restart is announced %d times", n)
	}
}

// All ranks stop after the step in which one of them handles the signal.
func (s *scriptPlace) terminated() {
	s.t.Helper()
	s.must(os.RemoveAll(filepath.Join(s.root, "snapshots")))
	job := s.train(filepath.Join(testbed, "atstep.py"), "wait", "50")
	job.waitFor("waiting in step 50")
	job.signal(syscall.SIGTERM)
	job.checkCode(128 + int(syscall.SIGTERM))
	s.checkContinued(s.train(), "step-000000050-attempt-0.pt")
}
