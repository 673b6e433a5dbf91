package integration

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// inAttempts is a program whose ranks write their pid, host and MASTER_ADDR to DIR/ATTEMPT/RANK and
// wait, except in the attempt LAST.
const inAttempts = `dir=$0/$RDZV_ATTEMPT
	mkdir -p "$dir"
	echo "$$ $(hostname) $MASTER_ADDR" >"$0/draft$$" && mv "$0/draft$$" "$dir/$RANK"
	[ "$RDZV_ATTEMPT" = "$1" ] || exec sleep 1000`

// A replacedJob is a job without a launcher on hosts of a cluster, of which agents are lost.
type replacedJob struct {
	*clusterPlace
	flags   []string
	program []string
	agents  map[int]*process // by host
}

// replacedJob starts a job with an agent on each of the hosts 1 to n, which restarts once.
func (c *cluster) replacedJob(t *testing.T, n int, flags ...string) *replacedJob {
	t.Helper()
	j := &replacedJob{clusterPlace: c.newPlace(t), agents: map[int]*process{}}
	j.flags = append([]string{
		"--nproc-per-node", "2", "--store", "node1", "--max-restarts", "3", "--peer-timeout", "3s",
		"--grace", "1s", "--job", filepath.Base(j.root),
	}, flags...)
	j.program = []string{"sh", "-c", inAttempts, j.dir("job"), "1"}
	for host := 1; host <= n; host++ {
		j.startAgent(host)
	}
	return j
}

func (j *replacedJob) startAgent(host int) *process {
	j.t.Helper()
	j.agents[host] = j.on(host, rdzvExec(j.flags, j.program)...)
	return j.agents[host]
}

// ranks waits until all ranks of an attempt have started, checks that they are on these hosts, two on
// each, and returns their pids.
func (j *replacedJob) ranks(attempt int, hosts ...string) (pids []int) {
	j.t.Helper()
	var found []string
	for _, host := range hosts {
		for range 2 {
			rank := len(pids)
			file := filepath.Join(j.dir("job"), strconv.Itoa(attempt), strconv.Itoa(rank))
			var text []byte
			written := func() bool { text, _ = os.ReadFile(file); return len(text) > 0 }
			if !eventually(waitLimit, written) {
				j.t.Fatalf("rank %d of attempt %d has not started", rank, attempt)
			}
			pid, rest, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
			if want := host + " 10.77.0.11"; rest != want {
				j.t.Errorf("rank %d of attempt %d is on %s, want %s", rank, attempt, rest, want)
			}
			n, err := strconv.Atoi(pid)
			if err != nil {
				j.t.Fatal(err)
			}
			pids, found = append(pids, n), append(found, file)
		}
	}
	if all, _ := filepath.Glob(filepath.Join(filepath.Dir(found[0]), "*")); len(all) != len(pids) {
		j.t.Errorf("attempt %d has the ranks %q, want %d", attempt, all, len(pids))
	}
	return pids
}

// end checks that the job succeeds, and what each of its agents has printed.
func (j *replacedJob) end(want ...string) {
	j.t.Helper()
	for _, host := range slices.Sorted(maps.Keys(j.agents)) {
		j.agents[host].checkCode(0)
	}
	for _, text := range want {
		if lines := j.agents[1].linesWith(text); len(lines) != 1 {
			j.t.Errorf("%d lines with %q: %q", len(lines), text, j.agents[1].linesWith("rdzv: "))
		}
	}
}

// The agent of a node is lost in different ways, and is started again on the same node or on another
// one. All workers of the job start again with the same ranks; no attempt has others.
func TestLostAgentIsStartedAgain(t *testing.T) {
	c := newCluster(t, 4)
	nodes := []string{"--nodes", "3"}
	killed, moved := c.replacedJob(t, 3, nodes...), c.replacedJob(t, 3, nodes...)
	cut, watchdog := c.replacedJob(t, 3, nodes...), c.replacedJob(t, 3, nodes...)
	const lost, waits = "lost the agent of ranks 4 to 5 ", "for an agent in place of node3 (ranks 4-5)"
	all := []string{"node1", "node2", "node3"}
	again := func(j *replacedJob, host int) {
		j.agents[1].waitFor(waits)
		j.startAgent(host)
	}
	pids := map[*replacedJob][]int{}
	for _, j := range []*replacedJob{killed, moved, cut, watchdog} {
		pids[j] = j.ranks(0, all...)
	}
	kill(parentOf(parentOf(pids[killed][5])))
	kill(parentOf(parentOf(pids[moved][5])))
	kill(parentOf(pids[watchdog][5]))
	again(killed, 3)
	again(moved, 4)
	delete(moved.agents, 3)
	killed.ranks(1, all...)
	moved.ranks(1, "node1", "node2", "node4")
	watchdog.ranks(1, all...)
	killed.end(lost, waits, "node3 runs ranks 4-5 again (restart 1 of 3)")
	moved.end(lost, waits, "node4 takes over ranks 4-5 of node3 (restart 1 of 3)")
	watchdog.end("lost the watchdog of rank ", "restarting all workers (restart 1 of 3)")

	old := cut.agents[3]
	c.hosts("cut", "3")
	old.checkCode(123)
	cut.agents[1].waitFor(waits)
	for _, pid := range pids[cut] {
		if commandLine(pid)[0] == "sleep" {
			t.Errorf("when the others wait, worker %d of the attempt before is alive", pid)
		}
	}
	c.hosts("heal", "3")
	again(cut, 3)
	cut.ranks(1, all...)
	cut.end(lost, waits, "node3 runs ranks 4-5 again (restart 1 of 3)")
}
