package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
)

// One rank fails: descendants that ignore signals, that no process waits for, that are in another
// session, that are stopped or that have the standard streams open end too, on all hosts, and the
// launcher does not wait for those with open streams.
func TestDescendantsEnd(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	var all []variant
	for _, launcher := range jobLaunchers {
		for _, hosts := range []int{1, 2} {
			run := func(t *testing.T) {
				// All must have ended 1 s after Open MPI's first SIGTERM, when it sends SIGKILL.
				flags := []string{"--grace", "500ms"}
				j := c.startJob(t, launcher, hosts, flags, worker("descendants", jobDir))
				j.checkCommands(failCode)
				j.checkAgentCodes(failCode)
				j.removeLeftovers()
			}
			of := strconv.Itoa(hosts)
			all = append(all, variant{of, launcher, scenario{launcher + of, run}})
		}
	}
	runConcurrently(t, selected(all))
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

// dataLoader is a torch program whose ranks have two DataLoader workers each. They ignore SIGTERM
// and have a child that nobody waits for, and one in another session. All have the standard
// streams.
const dataLoader = `import os, signal, sys, time
import torch
class Squares(torch.utils.data.Dataset):
    def __len__(self): return 10**9
    def __getitem__(self, i): return torch.tensor([float(i * i)])
def start(_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os._exit(0)
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2, worker_init_fn=start)
for batch in loader:
    if not os.path.exists(sys.argv[1] + "/" + os.environ["RANK"]):
        open(sys.argv[1] + "/" + os.environ["RANK"], "w").close()
    time.sleep(0.01)
`

// A rank, its agent, its runner or mpirun is killed: its DataLoader workers end, and so do those
// of the rank that is stopped because of it. The place checks that none is left.
func TestDataLoaderWorkersEnd(t *testing.T) {
	t.Parallel()
	var scenarios []scenario
	for name, pidOf := range map[string]func(job *process, rank int) int{
		"rank":   func(_ *process, rank int) int { return rank },
		"runner": func(_ *process, rank int) int { return parentOf(rank) },
		"agent":  func(_ *process, rank int) int { return agentAbove(rank) },
		"mpirun": func(job *process, _ int) int { return job.pid() },
	} {
		scenarios = append(scenarios, scenario{name, func(t *testing.T) {
			p := newPlace(t)
			dir := p.dir("job")
			line := openMPI(p, 2, []string{"--grace", "500ms"},
				[]string{python, "-c", dataLoader, dir})
			job := p.startWith(ownSession(p, name), line...)
			loading := func() bool { found, _ := filepath.Glob(dir + "/*"); return len(found) == 2 }
			if !eventually(waitLimit, loading) {
				t.Fatal("the ranks have not loaded a batch")
			}
			killed := time.Now()
			kill(pidOf(job, p.rankWithLoaders()))
			if job.code() == 0 {
				t.Error("the job ended with exit code 0")
			}
			p.checkNoProcesses()
			t.Logf("all processes have ended %v after SIGKILL", time.Since(killed))
			p.removeFiles() // Python's multiprocessing removes its directory only if it ends by itself
		}})
	}
	runConcurrently(t, scenarios)
}

// rankWithLoaders is one of the two ranks, after each has two DataLoader workers with a child each.
func (p *place) rankWithLoaders() int {
	p.t.Helper()
	var ranks, loaders []int
	all := func() bool {
		ranks, loaders = nil, nil
		for _, pid := range p.marked() {
			switch {
			case commandLine(pid)[0] != python:
			case commandLine(parentOf(pid))[0] == python:
				loaders = append(loaders, pid)
			default:
				ranks = append(ranks, pid)
			}
		}
		return len(ranks) == 2 && len(loaders) >= 8
	}
	if !eventually(waitLimit, all) {
		p.t.Fatalf("%d ranks have %d DataLoader workers, want 2 with 8", len(ranks), len(loaders))
	}
	return ranks[0]
}

// leavesTree is a worker that ignores SIGTERM. Its descendants do so too, are in other sessions, or
// have lost their parents.
const leavesTree = `trap "" TERM
(setsid sh -c 'sleep 1000 & (setsid sleep 1000 &) ; echo ready; wait' &)
sleep 1000 & wait; wait`

// All processes of a user's jobs are killed by name: a process that has another name is left, and
// kills the tree. The names are looked up in a pid namespace, where only this job is.
func TestKilledByName(t *testing.T) {
	t.Parallel()
	for name, line := range map[string][]string{
		"pkill":      {"pkill", "-9", "rdzv"},
		"pkill -f":   {"pkill", "-9", "-f", "rdzv exec"},
		"everything": {"pkill", "-9", "-f", "rdzv"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			namespace := strings.Fields("unshare --pid --fork --mount-proc --kill-child")
			if os.Geteuid() != 0 {
				namespace = append(namespace, "--map-root-user")
			}
			script := `"$@" & until [ -e killed ]; do sleep 0.1; done; exec sleep 1001`
			// pkill starts in the namespace of the job.
			inside := []string{"sh", "-c", script, "sh"}
			init := p.start(slices.Concat(namespace, inside,
				rdzvExec(nil, []string{"sh", "-c", leavesTree}))...)
			init.waitFor("ready")
			process1 := procfs.FindDescendant(procfs.System, init.pid(), func(pid int) bool {
				return commandLine(pid)[0] == "sh"
			})
			enter := []string{"nsenter", "-t", strconv.Itoa(process1), "--pid", "--mount"}
			if os.Geteuid() != 0 {
				enter = append(enter, "--user", "--preserve-credentials")
			}
			p.start(append(enter, line...)...).checkCode(0)
			if err := os.WriteFile(filepath.Join(p.root, "killed"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p.checkNone(func() []int {
				return slices.DeleteFunc(p.tree(), func(pid int) bool {
					line := commandLine(pid)
					return pid == init.pid() || pid == process1 && line[0] == "sleep"
				})
			})
			init.signal(syscall.SIGKILL)
			p.removeFiles() // those of the agent
		})
	}
}

// The runner of a rank is killed that has succeeded and left a descendant, while the other rank
// runs: that is the loss of a node, after which the job may be restarted.
func TestHolderKilledAfterItsWorker(t *testing.T) {
	t.Parallel()
	const program = `if [ $RDZV_ATTEMPT = 1 ]; then exit 0; fi
if [ $RANK = 0 ]; then exec sleep 1000; fi
(setsid sleep 1001 &)`
	for name, row := range map[string]struct {
		flags []string
		code  int
		line  string
	}{
		"the job ends":  {nil, 123, "lost the runner of rank 1 on "},
		"another start": {[]string{"--max-restarts", "1"}, 0, "restarting all workers (restart 1 of 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			job := p.start(openMPI(p, 2, row.flags, []string{"sh", "-c", program})...)
			runner := 0
			left := func() bool {
				pids := p.marked()
				at := slices.IndexFunc(pids, func(pid int) bool {
					return slices.Equal(commandLine(pid), []string{"sleep", "1001"})
				})
				if at >= 0 && isRdzv(parentOf(pids[at])) {
					runner = parentOf(pids[at])
				}
				return runner != 0
			}
			if !eventually(waitLimit, left) {
				t.Fatal("rank 1 has left no process")
			}
			kill(runner)
			job.checkCode(row.code)
			if len(job.linesWith(row.line)) == 0 {
				t.Errorf("no line has %q", row.line)
			}
		})
	}
}
