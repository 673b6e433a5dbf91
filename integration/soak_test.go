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
	soakFor    = flag.Duration("soak", 3*time.Second, "how long TestResourcesDoNotGrow runs a job")
	soakAgents = flag.Int("soak-agents", 8, "number of its agents")
	soakJobs   = flag.Int("soak-jobs", 10, "number of jobs of TestManyJobsInOneLauncher")
)

// usage is what some processes use of a machine.
type usage struct {
	processes, threads, fds int
	private, largest        int           // kB
	cpu                     time.Duration // so far, in steps of 10 ms
	wakeups                 int           // so far
}

// usageOf adds up what processes use. Here a runner does not count as part of its agent.
func usageOf(pids []int) (sum usage) {
	sum.processes = len(pids)
	for _, pid := range pids {
		private := privateMemory(pid)
		sum.private += private
		sum.largest = max(sum.largest, private)
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		sum.fds += len(fds)
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		sum.threads += len(threads)
		for _, status := range threads {
			sum.wakeups += numberIn(status, "voluntary_ctxt_switches:")
		}
		sum.cpu += cpuTime(pid)
	}
	return sum
}

// privateMemory is the memory in kB that only this process uses.
func privateMemory(pid int) int {
	path := fmt.Sprintf("/proc/%d/smaps_rollup", pid)
	return numberIn(path, "Private_Clean:") + numberIn(path, "Private_Dirty:")
}

// cpuTime is the CPU time of a process in user and system mode.
func cpuTime(pid int) time.Duration {
	const userField, systemField = 11, 12 // after the name
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) <= systemField {
		return 0
	}
	user, _ := strconv.Atoi(fields[userField])
	system, _ := strconv.Atoi(fields[systemField])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// A job that runs for long uses as much at its end as at its beginning. The limits allow for a heap
// between two garbage collections and for a thread that was needed once. What grows with time
// exceeds them in make soak.
func TestResourcesDoNotGrow(t *testing.T) {
	j := startManyJob(t, *soakAgents)
	settled := time.Now().Add(settleTime())
	j.runsUntil(settled)
	first := usageOf(j.place.rdzvProcesses())
	j.runsUntil(settled.Add(*soakFor))
	last := usageOf(j.place.rdzvProcesses())
	j.end.Close()
	j.checkEnd(0)
	logTable(t, first, last)
	if last.processes != first.processes || first.processes < 2**soakAgents {
		t.Errorf("%d processes at first and %d at last, want the same number, at least %d",
			first.processes, last.processes, 2**soakAgents)
	}
	for _, what := range []struct {
		name                string
		first, last, growth int
	}{
		{"descriptors", first.fds, last.fds, 4},
		{"threads", first.threads, last.threads, 4 + *soakAgents/4},
		{"kB of private memory", first.private, last.private, 256**soakAgents + 4096},
		{"kB of private memory of the largest process", first.largest, last.largest, 8192},
	} {
		if what.last > what.first+what.growth {
			t.Errorf("%d %s at first and %d at last, want at most %d more",
				what.first, what.name, what.last, what.growth)
		}
	}
}

// settleTime is how long to wait until a job that has started uses what it will use.
func settleTime() time.Duration { return max(2*time.Second, *soakFor/10) }

// logTable logs the rows of a table of dev/bench.md.
func logTable(t *testing.T, first, last usage) {
	seconds, agents := soakFor.Seconds(), float64(*soakAgents)
	wakeups := float64(last.wakeups-first.wakeups) / seconds
	cpu := (last.cpu - first.cpu).Seconds() * 3600 / seconds
	t.Logf("| %d agents | after %v | %v later |", *soakAgents, settleTime(), *soakFor)
	t.Log("| --- | --- | --- |")
	t.Logf("| processes, threads, descriptors | %d, %d, %d | %d, %d, %d |",
		first.processes, first.threads, first.fds, last.processes, last.threads, last.fds)
	t.Logf("| private memory of all and of the largest, kB | %d, %d | %d, %d |",
		first.private, first.largest, last.private, last.largest)
	t.Logf("| wake-ups per second, in all and per agent | | %.1f, %.2f |", wakeups, wakeups/agents)
	t.Logf("| CPU per hour, in all and per agent | | %.1f s, %.2f s |", cpu, cpu/agents)
}

// Many jobs run one after another in the tasks of one launcher. All succeed, the last do not take
// longer than the first, and no files of stores, sockets or ranks are left, not even between the
// jobs.
func TestManyJobsInOneLauncher(t *testing.T) {
	p := newPlace(t)
	loop := `i=0; while [ $i -lt "$0" ]; do "$@" || exit; i=$((i+1))
		[ "$OMPI_COMM_WORLD_RANK" != 0 ] ||
			echo "job $(date +%s%N) $(find "$TMPDIR" | grep -c rdzv)"; done`
	line := append(mpirunCommand(4), "sh", "-c", loop, strconv.Itoa(*soakJobs))
	c := p.start(append(line, rdzvExec(nil, []string{"true"})...)...)
	if !c.endsWithin(time.Duration(*soakJobs) * 10 * time.Second) {
		t.Fatal("the jobs have not ended")
	}
	c.checkCode(0)
	took, files := jobsOf(t, c)
	quarter := max(1, len(took)/4)
	first, last := median(took[:quarter]), median(took[len(took)-quarter:])
	t.Logf("%d jobs: each of the first quarter took %v, of the last %v; rdzv's files between "+
		"them: %v",
		len(took)+1, first, last, files)
	if last > 3*first+time.Second {
		t.Errorf("a job took %v at first and %v at last, want at most %v",
			first, last, 3*first+time.Second)
	}
	if grown := files[len(files)-1] - files[0]; grown > 1 {
		t.Errorf("the numbers of files between the jobs are %v, want the same", files)
	}
}

// jobsOf returns how long each job but the first took, and how many files existed after each.
func jobsOf(t *testing.T, c *process) (took []time.Duration, files []int) {
	t.Helper()
	var before int64
	for _, line := range c.linesWith("job ") {
		var at int64
		var n int
		if _, err := fmt.Sscanf(line, "job %d %d", &at, &n); err != nil {
			t.Fatalf("cannot read the line %q: %v", line, err)
		}
		if before != 0 {
			took = append(took, time.Duration(at-before).Round(time.Millisecond))
		}
		before, files = at, append(files, n)
	}
	if len(files) != *soakJobs {
		t.Fatalf("%d jobs have ended, want %d", len(files), *soakJobs)
	}
	return took, files
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
