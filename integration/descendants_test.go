package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// One rank fails: descendants that ignore signals, that nobody waits for, that have a session of their own, that are
// stopped or hold the standard streams go as well, on all hosts, and nobody has to wait for those that hold streams.
func TestDescendantsEnd(t *testing.T) {
	f := newField(t)
	var scenarios []scenario
	for _, launcher := range jobLaunchers {
		for _, hosts := range []int{1, 2} {
			scenarios = append(scenarios, scenario{launcher + strconv.Itoa(hosts), func(t *testing.T) {
				// Open MPI gives 1 s from its first SIGTERM to its SIGKILL: all is over by then.
				j := f.startJob(t, launcher, hosts, []string{"--grace", "500ms"}, actor("brood", ""))
				for _, command := range j.commands {
					if code := command.code(); code != workerCode {
						t.Errorf("the launcher ended with %d, want %d", code, workerCode)
					}
				}
				j.checkAgentCodes(workerCode)
				j.removeLeftovers()
			}})
		}
	}
	runConcurrently(t, scenarios)
}

// 64 workers under one agent, one of which fails.
func TestSixtyFourWorkers(t *testing.T) {
	const n = 64
	p := newPlace(t)
	dir := p.dir("job")
	job := p.start(direct(p, n, nil, actor("family", dir))...)
	workers := records(t, dir, n)
	if err := syscall.Kill(workers[n/2].PID, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if code := job.code(); code != workerCode {
		t.Errorf("rdzv ended with %d, want %d", code, workerCode)
	}
	if len(job.linesWith("rank 32 of 64 failed first")) != 1 {
		t.Error("nobody has said that rank 32 failed first")
	}
}

// loader is a program of real torch whose ranks have two DataLoader workers each.
const loader = `import os, sys, time
import torch
class Squares(torch.utils.data.Dataset):
    def __len__(self): return 10**9
    def __getitem__(self, i): return torch.tensor([float(i * i)])
for batch in torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2):
    if not os.path.exists(sys.argv[1] + "/" + os.environ["RANK"]):
        open(sys.argv[1] + "/" + os.environ["RANK"], "w").close()
    time.sleep(0.01)
`

// A rank that is killed cannot end its DataLoader's workers, nor can those that are stopped because of it.
func TestDataLoaderWorkersEnd(t *testing.T) {
	p := newPlace(t)
	dir := p.dir("job")
	job := p.start(openMPI(p, 2, nil, []string{python, "-c", loader, dir})...)
	atWork := func() bool { found, _ := filepath.Glob(dir + "/*"); return len(found) == 2 }
	if !eventually(waitLimit, atWork) {
		t.Fatal("the ranks do not load anything")
	}
	var ranks, loaders []int
	for _, pid := range p.alive() {
		if line := commandLine(pid); len(line) > 2 && line[0] == python {
			if parent := commandLine(parentOf(pid)); parent[0] == python {
				loaders = append(loaders, pid)
			} else {
				ranks = append(ranks, pid)
			}
		}
	}
	if len(ranks) != 2 || len(loaders) < 4 {
		t.Fatalf("%d ranks have %d DataLoader workers", len(ranks), len(loaders))
	}
	kill(ranks[0])
	if code := job.code(); code != 128+9 {
		t.Errorf("mpirun ended with %d, want 137", code)
	}
	// That all have gone, newPlace checks. Python's multiprocessing tidies up only when it ends by itself.
	left, _ := filepath.Glob(filepath.Join(p.root, "tmp/pymp-*"))
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}

// An ordinary user has all of this too.
func TestWithoutRoot(t *testing.T) {
	for _, l := range launchers[:3] { // Slurm has users of its own
		for _, killCase := range []string{"worker", "agent", "watchdog"} {
			t.Run(l.name+"/"+killCase, func(t *testing.T) {
				p := newPlace(t)
				dir := p.dir("job")
				line := asNobody(t, p, l.line(p, 4, nil, actor("family", dir)))
				job := p.start(line...)
				workers := records(t, dir, 4)
				bed := watchExits(slices.DeleteFunc(p.tree(), func(pid int) bool { return pid == job.cmd.Process.Pid }))
				defer bed.close()
				signalled := map[string]int{
					"worker": workers[3].PID, "watchdog": parentOf(workers[3].PID), "agent": parentOf(parentOf(workers[3].PID)),
				}[killCase]
				if err := syscall.Kill(signalled, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				bed.wait(15*time.Second, nil)
				if len(bed.pidfds) > 0 {
					t.Errorf("%d processes live on", len(bed.pidfds))
				}
				want := map[string]int{"worker": 137, "watchdog": 123, "agent": 137}[killCase]
				if killCase == "agent" && l.name == "hydra" {
					want = 9 // how Hydra tells of SIGKILL
				}
				if code := job.code(); code != want {
					t.Errorf("the launcher ended with %d, want %d", code, want)
				}
				if err := os.RemoveAll(filepath.Join(p.root, "tmp")); err != nil { // an agent that was killed leaves its store
					t.Error(err)
				}
				p.dir("tmp")
			})
		}
	}
}

// asNobody makes the place a user's that is not root, and the line one that this user runs.
func asNobody(t *testing.T, p *place, line []string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		return line
	}
	const nobody = "65534"
	for i, word := range line { // wherever they were built, that user may not come there
		if word != *rdzvBin && word != self {
			continue
		}
		own := filepath.Join(p.root, filepath.Base(word))
		if out, err := exec.Command("cp", word, own).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		line[i] = own
	}
	if out, err := exec.Command("chown", "-R", nobody, p.root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.env = slices.DeleteFunc(p.env, func(entry string) bool { return strings.HasPrefix(entry, "OMPI_ALLOW_RUN_AS_ROOT") })
	return append([]string{"setpriv", "--reuid", nobody, "--regid", nobody, "--clear-groups"}, line...)
}
