package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// A trainingFault ends one attempt of a training; see run_train in testbed/ranks.py.
type trainingFault struct {
	Kind  string
	Ranks []int
	Epoch int // at whose beginning; 0 is before init_process_group
}

// The example, with torch, continues from its snapshots after each of these faults, and has the
// parameters of a training that was not disturbed, bit for bit. It has two ranks: the sum of more
// depends on how DistributedDataParallel divides the parameters, which it changes after the first
// step of each attempt.
func TestTrainingContinuesAfterRestart(t *testing.T) {
	t.Parallel()
	program := startRankServer(t, "train")
	undisturbed := startTraining(t, direct, program, []trainingFault{{Ranks: []int{}}})
	undisturbed.checkCode(0)
	want := undisturbed.linesWith("parameters ")
	var scenarios []scenario
	for _, test := range []struct {
		name   string
		launch func(p *place, n int, flags, program []string) []string
		faults []trainingFault
	}{
		{"killed, exit, exception", openMPI,
			[]trainingFault{{"kill", []int{1}, 3}, {"_exit", []int{1}, 5}, {"raise", []int{1}, 7}}},
		{"rank 0, starting, two at once", hydra,
			[]trainingFault{{"kill", []int{0}, 2}, {"kill", []int{1}, 0}, {"kill", []int{0, 1}, 6}}},
		{"saving twice, exception of rank 0", direct,
			[]trainingFault{{"save", []int{0}, 1}, {"save", []int{0}, 4}, {"raise", []int{0}, 8}}},
	} {
		scenarios = append(scenarios, scenario{test.name, func(t *testing.T) {
			job := startTraining(t, test.launch, program, test.faults)
			job.checkCode(0)
			if got := job.linesWith("parameters "); len(want) != 1 || !slices.Equal(got, want) {
				t.Errorf("it ended with %q, want %q", got, want)
			}
			for restart := range test.faults {
				if n := len(job.linesWith(fmt.Sprintf("(restart %d of 3)", restart+1))); n != 1 {
					t.Errorf("restart %d is announced %d times", restart+1, n)
				}
			}
		}})
	}
	runConcurrently(t, scenarios)
}

func startTraining(
	t *testing.T, launch func(p *place, n int, flags, program []string) []string,
	program []string, faults []trainingFault,
) *process {
	t.Helper()
	text, err := json.Marshal(faults)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	env := []string{"RANKS_DIR=" + p.dir("data"), "RANKS_FAULTS=" + string(text), "OMP_NUM_THREADS=1"}
	flags := []string{"--max-restarts", "3", "--grace", "1s"}
	// torch 2.6 leaves temporary files when it is killed.
	program = append([]string{"env", "TMPDIR=" + p.dir("data")}, program...)
	return p.startWith(env, launch(p, 2, flags, program)...)
}
