package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// One rank fails: descendants that ignore signals, that no process waits for, that are in another
// session, that are stopped or that have the standard streams open end too, on all hosts, and the
// launcher does not wait for those with open streams.
func TestDescendantsEnd(t *testing.T) {
	c := newJobCluster(t)
	var scenarios []scenario
	for _, launcher := range jobLaunchers {
		for _, hosts := range []int{1, 2} {
			scenarios = append(scenarios, scenario{launcher + strconv.Itoa(hosts), func(t *testing.T) {
				// All must have ended 1 s after Open MPI's first SIGTERM, when it sends SIGKILL.
				flags := []string{"--grace", "500ms"}
				j := c.startJob(t, launcher, hosts, flags, worker("descendants", jobDir))
				j.checkCommands(failCode)
				j.checkAgentCodes(failCode)
				j.removeLeftovers()
			}})
		}
	}
	runConcurrently(t, scenarios)
}

// One of 64 workers of one agent fails.
func TestSixtyFourWorkers(t *testing.T) {
	const n = 64
	p := newPlace(t)
	dir := p.dir("job")
	job := p.start(direct(p, n, nil, worker("session", dir))...)
	workers := records(t, dir, n)
	if err := syscall.Kill(workers[n/2].PID, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	job.checkCode(failCode)
	if lines := job.linesWith("rank 32 of 64 failed first"); len(lines) != 1 {
		t.Errorf("%d lines say that rank 32 failed first, want 1", len(lines))
	}
}

// dataLoader is a torch program whose ranks have two DataLoader workers each.
const dataLoader = `import os, sys, time
import torch
class Squares(torch.utils.data.Dataset):
    def __len__(self): return 10**9
    def __getitem__(self, i): return torch.tensor([float(i * i)])
for batch in torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2):
    if not os.path.exists(sys.argv[1] + "/" + os.environ["RANK"]):
        open(sys.argv[1] + "/" + os.environ["RANK"], "w").close()
    time.sleep(0.01)
`

// A rank is killed: its DataLoader workers end, and so do those of the rank that is stopped because
// of it.
func TestDataLoaderWorkersEnd(t *testing.T) {
	p := newPlace(t)
	dir := p.dir("job")
	job := p.start(openMPI(p, 2, nil, []string{python, "-c", dataLoader, dir})...)
	loading := func() bool { found, _ := filepath.Glob(dir + "/*"); return len(found) == 2 }
	if !eventually(waitLimit, loading) {
		t.Fatal("the ranks have not loaded a batch")
	}
	var ranks, loaders []int
	for _, pid := range p.marked() {
		switch {
		case commandLine(pid)[0] != python:
		case commandLine(parentOf(pid))[0] == python:
			loaders = append(loaders, pid)
		default:
			ranks = append(ranks, pid)
		}
	}
	if len(ranks) != 2 || len(loaders) < 4 {
		t.Fatalf("%d ranks have %d DataLoader workers, want 2 with 4", len(ranks), len(loaders))
	}
	kill(ranks[0])
	job.checkCode(128 + 9)
	// The place checks that all have ended. Python's multiprocessing removes its directory only if
	// it ends by itself.
	left, _ := filepath.Glob(filepath.Join(p.root, "tmp/pymp-*"))
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}
