package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// Real torch trains under Open MPI, ends with the same parameters everywhere, and a second run goes on where the
// first one stopped.
func TestTrain(t *testing.T) {
	program, err := filepath.Abs("../examples/train.py")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	home := p.dir("data")
	prog := []string{python, program, "--epochs", "3", "--snapshot", filepath.Join(home, "snapshot.pt")}

	first := p.start(openMPI(p, 4, nil, prog)...)
	if code := first.code(); code != 0 {
		t.Fatalf("the first run ended with %d", code)
	}
	checkTraining(t, first, 1)
	if _, err := os.Stat(filepath.Join(home, "snapshot.pt")); err != nil {
		t.Fatal(err)
	}

	second := p.start(openMPI(p, 4, nil, prog)...)
	if code := second.code(); code != 0 {
		t.Fatalf("the second run ended with %d", code)
	}
	second.waitFor("continuing after epoch 3")
	checkTraining(t, second, 4)
	if before, after := lossOf(t, first, 3), lossOf(t, second, 6); after >= before {
		t.Errorf("the loss was %v after the first run and is %v after the second", before, after)
	}
}

// checkTraining: 4 ranks, 3 epochs from the one given, the loss falling, the same parameters at the end.
func checkTraining(t *testing.T, run *process, from int) {
	t.Helper()
	for rank := range 4 {
		if len(run.linesWith("rank "+strconv.Itoa(rank)+" of 4")) != 1 {
			t.Errorf("rank %d has not said who it is, once", rank)
		}
	}
	if before, after := lossOf(t, run, from), lossOf(t, run, from+2); after >= before {
		t.Errorf("the loss went from %v to %v", before, after)
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
	t.Fatalf("no loss of epoch %d", epoch)
	return 0
}
