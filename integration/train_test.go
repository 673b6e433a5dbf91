package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// The example trains with torch under Open MPI. All ranks have the same parameters at the end, and
// a second run continues from the snapshot of the first.
func TestTrain(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../examples/train.py")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	snapshot := filepath.Join(p.dir("data"), "snapshot.pt")
	program := []string{python, script, "--epochs", "3", "--snapshot", snapshot}

	first := p.start(openMPI(p, 4, nil, program)...)
	first.checkCode(0)
	checkTraining(t, first, 1)
	if _, err := os.Stat(snapshot); err != nil {
		t.Fatal(err)
	}

	second := p.start(openMPI(p, 4, nil, program)...)
	second.checkCode(0)
	second.waitFor("continuing after epoch 3")
	checkTraining(t, second, 4)
	if before, after := lossOf(t, first, 3), lossOf(t, second, 6); after >= before {
		t.Errorf("the loss is %v after the first run and %v after the second, want less", before,
			after)
	}
}

// checkTraining checks a run of 3 epochs from the one given, on 4 ranks: the loss decreases, and
// all ranks have the same parameters at the end.
func checkTraining(t *testing.T, run *process, from int) {
	t.Helper()
	for rank := range 4 {
		if n := len(run.linesWith("rank " + strconv.Itoa(rank) + " of 4")); n != 1 {
			t.Errorf("%d lines are about rank %d, want 1", n, rank)
		}
	}
	if before, after := lossOf(t, run, from), lossOf(t, run, from+2); after >= before {
		t.Errorf("the loss changed from %v to %v, want less", before, after)
	}
	run.waitFor("the same on all 4 ranks")
}

var lossLine = regexp.MustCompile(`loss ([0-9.]+),`)

func lossOf(t *testing.T, run *process, epoch int) float64 {
	t.Helper()
	for _, line := range run.linesWith("epoch " + strconv.Itoa(epoch) + ":") {
		if found := lossLine.FindStringSubmatch(line); found != nil {
			loss, err := strconv.ParseFloat(found[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return loss
		}
	}
	t.Fatalf("the run printed no loss of epoch %d", epoch)
	return 0
}
