package integration

import (
	"cmp"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

var (
	scaleSizes = flag.String("scale", "16,64", "numbers of agents of TestScale")
	scaleRuns  = flag.Int("scale-runs", 1, "runs of TestScale for each line of its table")
	scaleIdle  = flag.Duration("scale-idle", 0, "how long the jobs of TestScale that succeed run")
)

// A scaleJob is a kind of job that TestScale runs with each number of agents.
type scaleJob struct {
	connection string // plain is --insecure
	end        string // fail: a worker fails; loss: an agent disconnects; done: all workers succeed
}

var scaleJobs = []scaleJob{{"plain", "fail"}, {"TLS", "fail"}, {"TLS", "loss"}, {"TLS", "done"}}

// How the cost of a job grows with the number of agents. They are simulated: goroutines of this
// process, each with a connection of its own to an agent that hosts the store. What that agent uses
// is valid for a cluster. The times are upper bounds, because it shares the cores with all others.
// make scale simulates thousands of agents; dev/scale.md has its table.
func TestScale(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a real agent has a small heap of its own
	rows := []string{
		"agents|connection|end|world, ms|verdict, ms|settled, ms|CPU joining, ms|CPU ending, ms|" +
			"CPU idle, %|memory, MB|per agent: CPU, ms|memory, kB|wire, kB",
	}
	rows = append(rows, strings.Repeat("---|", strings.Count(rows[0], "|"))+"---")
	for _, job := range scaleJobs {
		for size := range strings.SplitSeq(*scaleSizes, ",") {
			n, err := strconv.Atoi(size)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprint(job.connection, " ", job.end, " ", n), func(t *testing.T) {
				rows = append(rows, job.median(t, n).row())
			})
		}
	}
	t.Log("\n" + markdownTable(rows))
}

// A scaleRun is what one job used. CPU and memory are those of the agent that hosts the store.
type scaleRun struct {
	scaleJob
	n                        int
	world                    time.Duration // until the last agent has its seat
	verdict, settled         time.Duration // from the job's end until the last agent knows of them
	joinCPU, idleCPU, endCPU time.Duration
	memory, growth           int   // peak, and how much of it since before the first connection, kB
	wire                     int64 // bytes that the agents sent and received
}

// median returns the run that took the median time to join.
func (j scaleJob) median(t *testing.T, n int) scaleRun {
	var runs []scaleRun
	for i := range *scaleRuns {
		if !t.Run(fmt.Sprint("run ", i), func(t *testing.T) { runs = append(runs, j.run(t, n)) }) {
			t.FailNow()
		}
	}
	slices.SortFunc(runs, func(a, b scaleRun) int { return cmp.Compare(a.world, b.world) })
	return runs[len(runs)/2]
}

func (j scaleJob) run(t *testing.T, n int) scaleRun {
	r := scaleRun{scaleJob: j, n: n}
	s := j.start(t, n)
	host := s.host.pid()
	empty := peakMemory(host)
	began, start := cpuClock(host), time.Now()
	s.joinAll()
	joined := cpuClock(host)
	r.world, r.joinCPU = time.Since(start), joined-began
	if j.end == "done" {
		s.host.runsUntil(time.Now().Add(*scaleIdle))
	}
	var sampling sync.WaitGroup
	idled := cpuClock(host)
	start = time.Now()
	r.idleCPU = idled - joined
	sampling.Go(func() { // the host ends when all agents have left
		eventually(2*waitLimit, func() bool {
			r.endCPU = max(r.endCPU, cpuClock(host)-idled)
			r.memory = max(r.memory, peakMemory(host))
			return s.host.endsWithin(0)
		})
	})
	s.finish()
	code := s.host.code()
	sampling.Wait()
	r.growth, r.wire = r.memory-empty, s.wire.Load()
	if want := map[string]int{"fail": 1, "loss": 123}[j.end]; code != want {
		t.Errorf("the host ended with exit code %d, want %d", code, want)
	}
	for _, a := range s.agents {
		r.verdict = max(r.verdict, a.verdict.Sub(start))
		r.settled = max(r.settled, a.settled.Sub(start))
	}
	return r
}

// peakMemory returns the most memory that a process has used so far, in kB.
func peakMemory(pid int) int { return numberIn(fmt.Sprintf("/proc/%d/status", pid), "VmHWM:") }

// cpuClock returns the CPU time of a process so far; 0 if it has ended. /proc has only multiples of
// 10 ms.
func cpuClock(pid int) time.Duration {
	const wholeProcess = 2 // CPUCLOCK_SCHED of the kernel's posix-timers.h
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|wholeProcess), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// row is a line of the table.
func (r scaleRun) row() string {
	n := float64(r.n)
	ms := func(d time.Duration) float64 { return 1000 * d.Seconds() }
	verdict, idle := "-", "-"
	if r.end != "done" {
		verdict = fmt.Sprintf("%.0f", ms(r.verdict))
	} else if *scaleIdle > 0 {
		idle = fmt.Sprintf("%.2f", 100*r.idleCPU.Seconds()/scaleIdle.Seconds())
	}
	return fmt.Sprintf("%d|%s|%s|%.0f|%s|%.0f|%.0f|%.0f|%s|%d|%.2f|%.0f|%.2f",
		r.n, r.connection, r.end, ms(r.world), verdict, ms(r.settled),
		ms(r.joinCPU), ms(r.endCPU), idle, r.memory>>10,
		ms(r.joinCPU+r.endCPU)/n, float64(r.growth)/n, float64(r.wire)/1024/n)
}

// markdownTable aligns the columns of rows whose cells are separated by "|".
func markdownTable(rows []string) string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 1, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(w, "| %s\t|\n", strings.ReplaceAll(row, "|", "\t| "))
	}
	w.Flush()
	return table.String()
}
