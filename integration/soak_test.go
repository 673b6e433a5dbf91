package integration

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	soakFor    = flag.Duration("soak", 3*time.Second, "how long the job of TestNothingGrows runs")
	soakAgents = flag.Int("soak-agents", 8, "its agents")
	soakJobs   = flag.Int("soak-jobs", 10, "jobs of TestJobsInOneLauncher")
)

// usage is what some processes take of a machine.
type usage struct {
	processes, threads, fds int
	private, largest        int           // kB
	cpu                     time.Duration // so far, in steps of 10 ms
	wakeups                 int           // so far
}

// usageOf adds up what processes take. A watchdog is another process than its agent here.
func usageOf(pids []int) (sum usage) {
	sum.processes = len(pids)
	for _, pid := range pids {
		private := privateOf(pid)
		sum.private += private
		sum.largest = max(sum.largest, private)
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		sum.fds += len(fds)
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		sum.threads += len(threads)
		for _, status := range threads {
			sum.wakeups += numberIn(status, "voluntary_ctxt_switches:")
		}
		if stat := statOf(pid); len(stat) > 12 {
			user, _ := strconv.Atoi(stat[11])
			system, _ := strconv.Atoi(stat[12])
			sum.cpu += time.Duration(user+system) * 10 * time.Millisecond
		}
	}
	return sum
}

// privateOf is the memory that only this process has, in kB.
func privateOf(pid int) int {
	path := fmt.Sprintf("/proc/%d/smaps_rollup", pid)
	return numberIn(path, "Private_Clean:") + numberIn(path, "Private_Dirty:")
}

// numberIn is the number behind a name in a file of /proc, 0 when there is none.
func numberIn(path, name string) int {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name); found {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

// A job that runs for long takes at its end what it took at its beginning. The bounds leave room for a heap between two
// collections and for a thread that a moment needed; what grows with every second exceeds them in make soak.
func TestResourcesDoNotGrow(t *testing.T) {
	c := startManyJob(t, *soakAgents)
	settled := time.Now().Add(max(2*time.Second, *soakFor/10)) // until all is as it will be
	c.runsUntil(settled)
	first := usageOf(c.rdzv())
	c.runsUntil(settled.Add(*soakFor))
	last := usageOf(c.rdzv())
	c.end.Close()
	c.over(0)
	report(t, first, last)
	if last.processes != first.processes || first.processes < 2**soakAgents {
		t.Errorf("%d processes, then %d", first.processes, last.processes)
	}
	for _, what := range []struct {
		name              string
		first, last, more int
	}{
		{"descriptors", first.fds, last.fds, 4},
		{"threads", first.threads, last.threads, 4 + *soakAgents/4},
		{"kB of private memory", first.private, last.private, 256**soakAgents + 4096},
		{"kB of private memory of the largest", first.largest, last.largest, 8192},
	} {
		if what.last > what.first+what.more {
			t.Errorf("%s: %d, then %d", what.name, what.first, what.last)
		}
	}
}

// report prints the rows of a table of docs/performance.md.
func report(t *testing.T, first, last usage) {
	seconds, agents := soakFor.Seconds(), float64(*soakAgents)
	t.Logf("| %d agents | %v in | %v later |", *soakAgents, max(2*time.Second, *soakFor/10), *soakFor)
	t.Log("| --- | --- | --- |")
	t.Logf("| processes, threads, descriptors | %d, %d, %d | %d, %d, %d |", first.processes, first.threads, first.fds, last.processes, last.threads, last.fds)
	t.Logf("| private memory of all and of the largest, kB | %d, %d | %d, %d |", first.private, first.largest, last.private, last.largest)
	t.Logf("| wake-ups a second, of all and an agent | | %.1f, %.2f |", float64(last.wakeups-first.wakeups)/seconds, float64(last.wakeups-first.wakeups)/seconds/agents)
	t.Logf("| CPU an hour, of all and an agent | | %.1f s, %.2f s |", (last.cpu-first.cpu).Seconds()*3600/seconds, (last.cpu-first.cpu).Seconds()*3600/seconds/agents)
}

// Many jobs one after another in the tasks of one launcher all go well, none takes longer than those before, and nothing
// is left behind, not between them either: of stores, sockets and what ranks have told one another.
func TestManyJobsInOneLauncher(t *testing.T) {
	p := newPlace(t)
	loop := `i=0; while [ $i -lt "$0" ]; do "$@" || exit; i=$((i+1)); [ "$OMPI_COMM_WORLD_RANK" != 0 ] || echo "job $(date +%s%N) $(find "$TMPDIR" | grep -c rdzv)"; done`
	line := append(mpirunCommand(4), "sh", "-c", loop, strconv.Itoa(*soakJobs))
	c := p.start(append(line, rdzvExec(nil, []string{"true"})...)...)
	if !eventually(time.Duration(*soakJobs)*10*time.Second, func() bool { return c.endsWithin(0) }) {
		t.Fatal("the jobs have not ended")
	}
	if code := c.code(); code != 0 {
		t.Errorf("the launcher ended with %d", code)
	}
	took, left := jobsOf(t, c)
	quarter := max(1, len(took)/4)
	first, last := median(took[:quarter]), median(took[len(took)-quarter:])
	t.Logf("%d jobs: the first quarter took %v each, the last %v; rdzv's files between them: %v", len(took)+1, first, last, left)
	if last > 3*first+time.Second {
		t.Errorf("a job took %v at first and %v at last", first, last)
	}
	if grown := left[len(left)-1] - left[0]; grown > 1 {
		t.Errorf("files between the jobs: %v", left)
	}
}

// jobsOf returns how long each job but the first took, and how many files there were after each.
func jobsOf(t *testing.T, c *process) (took []time.Duration, left []int) {
	t.Helper()
	var before int64
	for _, line := range c.linesWith("job ") {
		var at int64
		var files int
		if _, err := fmt.Sscanf(line, "job %d %d", &at, &files); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if before != 0 {
			took = append(took, time.Duration(at-before).Round(time.Millisecond))
		}
		before, left = at, append(left, files)
	}
	if len(left) != *soakJobs {
		t.Fatalf("%d of %d jobs have been noted", len(left), *soakJobs)
	}
	return took, left
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
