package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hangsInLoader is a Python program that hangs in all_reduce because rank 2 reads no more data.
const hangsInLoader = `import sys, time, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 9
    def __getitem__(self, i):
        if i == 3 and dist.get_rank() == 2:
            time.sleep(1000)
        return torch.ones(1)
dist.init_process_group("gloo")
for x in DataLoader(Data()):
    dist.all_reduce(x)`

// fakePySpy prints a stack as py-spy does, by what the kernel shows. A rank that it is not allowed
// to read would need more privileges.
const fakePySpy = `#!/bin/sh
[ "$*" = "dump --nonblocking --json --pid $5" ] || { echo "Error: usage" >&2; exit 1; }
grep -q nanosleep /proc/$5/wchan && call=__getitem__ || call=all_reduce
echo '[{"os_thread_id": '$5', "frames": [{"name": "'$call'", "filename": "a.py", "line": 7}]}]'
`

// rdzv stacks shows the rank for which the others wait, on each node of the job: by what the kernel
// shows, and by py-spy if it is installed. It changes nothing in the workers.
func TestStacksOfHangingJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	bin := c.dir("bin")
	path := "PATH=" + bin + ":" + os.Getenv("PATH")
	program := []string{python, "-c", hangsInLoader}
	j := c.startJob(t, "openmpi", 2, nil, program, "env", path)
	const odd = ": rank 2 (node2) is not where the others are: "
	lines := j.awaitStacks(1, odd, "ranks 0-1,3: waiting for another thread (futex)",
		"rank 2 (node2): sleeping (clock_nanosleep)", "py-spy is not installed on node1, node2: ")
	pid := regexp.MustCompile(`rank 2 .*\n  pid (\d+); `).FindStringSubmatch(lines)
	if pid == nil {
		t.Fatalf("the pid of rank 2 is not in\n%s", lines)
	}
	rank2, _ := strconv.Atoi(pid[1])
	before := untouched(t, pid[1])
	createProgram(t, filepath.Join(bin, "py-spy"), fakePySpy)
	j.awaitStacks(2, odd, "ranks 0-1,3\n    all_reduce (a.py:7)\n  on node1, node2; ",
		"rank 2 (node2)\n    __getitem__ (a.py:7)\n  pid "+pid[1]+"; sleeping (clock_nanosleep); ")
	if after := untouched(t, pid[1]); after != before {
		t.Errorf("the state of rank 2 was %q, and is %q after rdzv stacks", before, after)
	}
	j.signal(agentAbove(rank2), term) // its agent
	j.checkCommands(128 + int(term))
}

// awaitStacks runs rdzv stacks on a host until it prints these texts, and returns all that it
// prints.
func (j *job) awaitStacks(host int, texts ...string) (lines string) {
	j.t.Helper()
	var took time.Duration
	missing := func(text string) bool { return !strings.Contains(lines, text) }
	if !eventually(waitLimit, func() bool {
		show := j.start(j.cluster.on(host, *rdzvBin, "stacks")...)
		<-show.done
		list, _ := show.output()
		lines, took = strings.Join(list, "\n"), time.Since(show.started)
		return !slices.ContainsFunc(texts, missing)
	}) {
		j.t.Fatalf("rdzv stacks prints\n%s\nwant %q in it", lines, texts)
	}
	j.t.Logf("rdzv stacks has printed, after %v:\n%s", took, lines)
	return lines
}

// untouched is what changes in a process that sleeps if it is stopped, traced or signalled.
func untouched(t *testing.T, pid string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(regexp.MustCompile(
		`(?m)^(State|TracerPid|Sig(Pnd|Blk|Ign|Cgt)|Threads|.*voluntary_ctxt_switches):.*`,
	).FindAllString(string(text), -1), ", ")
}

func createProgram(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}
