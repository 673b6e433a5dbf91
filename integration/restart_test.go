package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// attempts is a program whose ranks write their pid, MASTER_PORT and the pid of a descendant that
// ignores SIGTERM to DIR/ATTEMPT/RANK. They check that no process of the attempt before exists, and
// wait; in the attempt LAST they succeed.
const attempts = `dir=$0/$RDZV_ATTEMPT
	for pid in $(cat "$0/$((RDZV_ATTEMPT - 1))"/* 2>/dev/null | cut -d" " -f1,4); do
		! kill -0 "$pid" 2>/dev/null || echo "$pid" >>"$0/alive"
	done
	mkdir -p "$dir"
	setsid sh -c 'trap "" TERM; exec sleep 1000' &
	echo "$$ $MASTER_PORT $RANK $!" >"$0/draft$RANK"
	mv "$0/draft$RANK" "$dir/$RANK"
	if [ "$RDZV_ATTEMPT" = "$1" ]; then exit; fi
	exec sleep 1000`

// A random rank is killed in each of two attempts, under every launcher, on one host and on two.
// Each time all ranks of all hosts start again, with another MASTER_PORT, and nothing is left.
func TestRestarts(t *testing.T) {
	t.Parallel()
	const last = 2
	c := newJobCluster(t)
	var all []variant
	for _, launcher := range jobLaunchers {
		for _, hosts := range []int{1, 2} {
			run := func(t *testing.T) {
				flags := []string{"--max-restarts", "9", "--grace", "300ms"}
				program := []string{"sh", "-c", attempts, jobDir, strconv.Itoa(last)}
				j := c.startJob(t, launcher, hosts, flags, program)
				ports := map[string]bool{}
				for attempt := range last {
					ranks := j.ranksOf(attempt)
					ports[ranks[0][1]] = true
					pid, err := strconv.Atoi(ranks[rand.IntN(workersPerJob)][0])
					if err != nil {
						t.Fatal(err)
					}
					kill(pid)
				}
				j.checkCommands(0)
				j.checkAgentCodes(0)
				ports[j.ranksOf(last)[0][1]] = true
				if len(ports) != last+1 {
					t.Errorf("%d attempts had the ports %v", last+1, ports)
				}
				if pids, err := os.ReadFile(filepath.Join(j.records(), "alive")); err == nil {
					t.Errorf("when the next attempt began these pids existed: %s", pids)
				}
				j.checkRestartLines(last)
			}
			of := strconv.Itoa(hosts)
			all = append(all, variant{of, launcher, scenario{launcher + of, run}})
		}
	}
	runConcurrently(t, selected(all))
}

// ranksOf waits until all ranks of an attempt have started, and returns what each has written.
func (j *job) ranksOf(attempt int) [][]string {
	j.t.Helper()
	files := filepath.Join(j.records(), strconv.Itoa(attempt), "*")
	var found []string
	all := func() bool { found, _ = filepath.Glob(files); return len(found) >= j.ranks }
	if !eventually(waitLimit, all) {
		j.t.Fatalf("%d ranks of attempt %d have started", len(found), attempt)
	}
	ranks := make([][]string, len(found))
	for i, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			j.t.Fatal(err)
		}
		ranks[i] = strings.Fields(string(text))
		if len(ranks[i]) != 4 || ranks[i][1] != ranks[0][1] || ranks[i][2] != strconv.Itoa(i) {
			j.t.Fatalf("rank %d of attempt %d has written %q", i, attempt, text)
		}
	}
	return ranks
}

// checkRestartLines checks that each attempt that failed has one line for each user who looks: one
// for all agents of a launcher. If workers need a second to end, what follows has a line of its own.
func (j *job) checkRestartLines(restarts int) {
	j.t.Helper()
	want := restarts
	if j.launcher == "direct" {
		want *= len(j.commands)
	}
	for _, text := range []string{"failed first: killed by SIGKILL after", "restarting all workers"} {
		if lines := j.linesWith(text); len(lines) != want {
			j.t.Errorf("%d lines with %q, want %d: %q", len(lines), text, want, j.linesWith("rdzv: "))
		}
	}
	if lines := j.linesWith("4 ranks on 2 nodes"); len(lines) != j.hosts-1 {
		j.t.Errorf("%d lines %q", len(lines), lines)
	}
}

// SIGTERM to the agent of one host ends the job while all wait before a restart, if no other agent
// can take its place: without a launcher that is the one that hosts the store.
func TestStoppedBetweenAttempts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	var scenarios []scenario
	for _, launcher := range []string{"direct", "openmpi", "hydra"} {
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) {
			const program = `[ $RANK = 3 ] || exec sleep 1000; echo $RDZV_ATTEMPT >>"$0/ended"; exit 9`
			flags := []string{"--max-restarts", "99"}
			j := c.startJob(t, launcher, 2, flags, []string{"sh", "-c", program, jobDir})
			const delay = "in 2s (restart 3 of 99)"
			if !eventually(waitLimit, func() bool { return len(j.linesWith(delay)) > 0 }) {
				t.Fatal("the job does not wait before the restart")
			}
			agents := j.agents()
			agent := agents[len(agents)-1]
			if launcher == "direct" {
				agent = agents[slices.IndexFunc(agents, func(pid int) bool {
					return parentOf(pid) == j.commands[0].pid() // on node1
				})]
			}
			if err := syscall.Kill(agent, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			j.checkCommands(128 + 15)
			const want = "0\n1\n2\n"
			if ended, _ := os.ReadFile(filepath.Join(j.records(), "ended")); string(ended) != want {
				t.Errorf("rank 3 failed in the attempts %q, want %q", ended, want)
			}
			j.removeLeftovers()
		}})
	}
	runConcurrently(t, scenarios)
}

// An MPI program can start again under Hydra, but not under Open MPI, where it would hang.
func TestRestartOfMPIPrograms(t *testing.T) {
	const fail = `
if os.environ["RDZV_ATTEMPT"] == "0":
    import time
    if os.environ["RANK"] == "1": os._exit(9)
    time.sleep(1000)
`
	flags := []string{"--max-restarts", "1", "--grace", "1s"}
	run := func(launch func(*place, int, []string, []string) []string, program string) *process {
		p := newPlace(t)
		return p.start(launch(p, 2, flags, []string{debianPython, "-c", program})...)
	}
	job := run(openMPI, openMPIProgram+fail)
	job.checkCode(9)
	if lines := job.linesWith("not restarted: the workers are MPI programs"); len(lines) != 1 {
		t.Errorf("under Open MPI the agents printed %q", job.linesWith("rdzv: "))
	}
	before, finalize, _ := strings.Cut(mpichProgram, "mpi.MPI_Finalize()")
	job = run(hydra, before+fail+"mpi.MPI_Finalize()"+finalize)
	job.checkCode(0)
	for rank := range 2 {
		if lines := job.linesWith(fmt.Sprintf("RANK %d is MPI rank %[1]d of 2", rank)); len(lines) != 2 {
			t.Errorf("rank %d printed %q, want 2 lines", rank, lines)
		}
	}
}
