package integration

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var hangs = flag.Bool("hangs", false, "run all cases of TestHangs under all launchers, make hangs")

// hangingTraining is a Python program that hangs in one of several ways in rank 2 of 4, or does not
// hang, in the first attempt. It prints while it imports torch, because that can take longer than
// the timeout.
const hangingTraining = `import os, signal, subprocess, sys, time
way = sys.argv[1]
beat = subprocess.Popen(["sh", "-c", "while sleep 0.3; do echo starting; done"])
import torch, torch.distributed as dist
class Data:
    def __len__(self): return 9
    def __getitem__(self, i):
        if i == 3 and rank == 2: time.sleep(1000)
        return torch.ones(1)
dist.init_process_group("gloo")
rank, x = dist.get_rank(), torch.ones(1)
one, two = dist.new_group(), dist.new_group()
dist.all_reduce(x)
beat.kill()
beat.wait()
print("ready", flush=True)
if os.environ["RDZV_ATTEMPT"] != "0": way = "well"
def spin(seconds):
    end = time.time() + seconds
    while time.time() < end: pass
if rank == 2:
    if way == "sleep": time.sleep(1000)
    if way == "loop": spin(1000)
    if way == "stop": os.kill(os.getpid(), signal.SIGSTOP)
    if way == "files": open(sys.argv[2] + "/data")
if way == "vfork" and rank == 2:
    import ctypes
    libc = ctypes.CDLL(None)
    if libc.vfork() == 0: libc.pause()
if way == "loader":
    import tempfile
    from torch.utils.data import DataLoader
    tempfile.tempdir = sys.argv[2]
    for y in DataLoader(Data(), num_workers=1): dist.all_reduce(y)
if way == "groups":
    for group in (one, two) if rank < 2 else (two, one): dist.all_reduce(x, group=group)
if way == "rank0" and rank == 0:
    for i in range(int(sys.argv[2])): time.sleep(1); print("step", i, flush=True)
if way == "compute": spin(1000)
if way == "evaluate" and rank == 0: spin(1000)
if way == "train":
    for i in range(int(sys.argv[2])):
        spin(0.3)
        dist.all_reduce(x)
        if i % 3 == 0: print("step", i, flush=True)
dist.barrier()`

// hangCase is one way in which a job hangs, or does not.
type hangCase struct {
	way, arg string
	want     string // in the line about the stall; "" if there is none
}

var hangCases = []hangCase{
	{"sleep", "", `rank 2 on node2 is behind \(its stack differs from the other 3\)`},
	{"loop", "", `rank 2 on node2 is behind \(its stack differs from the other 3\)`},
	{"stop", "", `rank 2 on node2 is behind \(it is stopped by a signal\)`},
	{"files", "stale", `rank 2 on node2 is behind \(it hangs in the kernel: opening a file .*uninterruptible\)`},
	{"vfork", "", `rank 2 on node2 is behind \(it hangs in the kernel: starting a process .*uninterruptible\)`},
	{"loader", "", `rank 2 on node2 is behind \(its stack differs from the other 3\)`},
	{"groups", "", `which rank is behind is not known: all are at the same place`},
	{"compute", "", `which rank is behind is not known: all are at the same place`},
	{"evaluate", "", `rank 0 on node1 is behind \(its stack differs from the other 3\)`},
	{"rank0", "40", ""},
	{"train", "100", ""},
}

// stallLimit is longer for a job that does not hang: processes for which a busy machine has no time
// are silent.
func stallLimit(h hangCase) string {
	if h.want == "" {
		return "20s"
	}
	return "8s"
}

// hangLimit is how long a job takes at most until it stalls, or ends: most of it imports torch.
const hangLimit = 5 * time.Minute

// A job that hangs ends, and the rank for which the others wait is named. What writes anything does
// not.
func TestHangs(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	stale := c.staleDirectory(t)
	var scenarios []scenario
	for i, h := range hangCases {
		if h.arg == "stale" {
			h.arg = stale
		}
		for j, launcher := range []string{"openmpi", "slurm", "direct"} {
			short := map[int]string{0: "direct", 2: "slurm", 3: "openmpi"}[i] == launcher
			if !*hangs && !short {
				continue
			}
			actions := []string{"end"}
			if *hangs {
				actions = [][]string{{"end", "restart"}, {"end", "stacks"}, {"end"}}[j]
			}
			for _, action := range actions {
				scenarios = append(scenarios, scenario{h.way + "/" + launcher + "/" + action,
					func(t *testing.T) { c.runHang(t, h, launcher, action) }})
			}
		}
	}
	runConcurrently(t, scenarios)
}

// staleDirectory is a directory on node2 whose server does not respond; "" without FUSE.
func (c *cluster) staleDirectory(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return ""
	}
	dir := c.dir("stale")
	line := append(strings.Fields(sudo()), python, "-c", staleMount, dir)
	server := c.start(c.on(2, line...)...)
	t.Cleanup(func() { c.hosts("crash", "2"); server.code() })
	server.waitFor("mounted")
	return dir
}

func (c *cluster) runHang(t *testing.T, h hangCase, launcher, action string) {
	if h.way == "files" && h.arg == "" {
		t.Skip("no FUSE")
	}
	logs, began := t.TempDir(), time.Now()
	if h.way == "loader" {
		h.arg = logs // where DataLoader leaves sockets
	}
	flags := []string{"--stall-timeout", stallLimit(h), "--log-dir", logs, "--grace", "2s"}
	want := 119
	switch action {
	case "restart":
		flags, want = append(flags, "--max-restarts", "1"), 0
	case "stacks":
		flags, want = append(flags, "--stall-action", "stacks"), 143
	}
	if h.want == "" {
		want = 0
	}
	j := c.startJob(t, launcher, 2, flags, []string{python, "-c", hangingTraining, h.way, h.arg})
	var stalled []string
	if h.want != "" {
		found := func() bool { stalled = j.linesWith("rdzv: stalled "); return len(stalled) > 0 }
		if !eventually(hangLimit, found) {
			t.Fatal("no stall was reported")
		}
		t.Logf("after %v: %s", time.Since(began).Round(100*time.Millisecond), stalled[0])
		if !regexp.MustCompile(h.want).MatchString(stalled[0]) {
			t.Errorf("the stall is %q, want %q in it", stalled[0], h.want)
		}
	}
	if action == "stacks" && h.want != "" {
		j.stopHanging()
	}
	for _, command := range j.commands {
		command.endsWithin(hangLimit)
	}
	j.checkCommands(want)
	if stalled = j.linesWith("rdzv: stalled "); h.want == "" && len(stalled) > 0 {
		t.Errorf("a job that does not hang has stalled: %q", stalled)
	}
	reports, _ := filepath.Glob(filepath.Join(logs, "latest", "attempt-0", "stall-*.txt"))
	if n := map[bool]int{true: 1}[h.want != ""]; len(reports) != n {
		t.Errorf("the reports are %q, want %d", reports, n)
	}
	for _, file := range reports {
		text, _ := os.ReadFile(file)
		t.Logf("%s", text)
	}
	j.checkStalledRanks(logs, h.want != "" && action != "stacks" && h.way == "loop")
}

// stopHanging ends a job that hangs, after some time in which nothing is reported again.
func (j *job) stopHanging() {
	j.t.Helper()
	time.Sleep(5 * time.Second)
	if lines := j.linesWith("rdzv: stalled "); len(lines) != 1 {
		j.t.Errorf("one stall was reported %d times: %q", len(lines), lines)
	}
	stop := j.start(j.cluster.on(1, *rdzvBin, "stop", j.jobName())...)
	stop.checkCode(0)
}

// jobName is that which rdzv status shows for this job.
func (j *job) jobName() string {
	j.t.Helper()
	for _, agent := range j.agents() {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", j.workerBelow(agent)))
		for entry := range strings.SplitSeq(string(environ), "\x00") {
			if name, is := strings.CutPrefix(entry, "RDZV_RUN_ID="); is {
				return name
			}
		}
	}
	j.t.Fatal("no worker has RDZV_RUN_ID")
	return ""
}

// workerBelow is a worker of an agent: a descendant of it that runs Python.
func (j *job) workerBelow(agent int) int {
	for _, pid := range j.tree() {
		if nameOf(pid) == filepath.Base(python) || strings.HasPrefix(nameOf(pid), "python") {
			if agentAbove(pid) == agent {
				return pid
			}
		}
	}
	return 0
}

// checkStalledRanks checks that ranks that wait in Python have printed their stacks.
func (j *job) checkStalledRanks(logs string, want bool) {
	j.t.Helper()
	if !want {
		return
	}
	files, _ := filepath.Glob(filepath.Join(logs, "latest", "attempt-0", "rank-*.log"))
	with := slices.DeleteFunc(files, func(file string) bool {
		text, _ := os.ReadFile(file)
		return !strings.Contains(string(text), "Fatal Python error: Aborted")
	})
	if len(with) != 4 {
		j.t.Errorf("only %q have stacks of Python", with)
	}
}
