package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// storeHost is the host whose agent hosts the store of a job without a launcher.
const storeHost = 1

// torchShare is the number of jobs of which one trains with torch.
const torchShare = 5

// restartsPerJob is --max-restarts of the jobs of TestChaosOfRestarts.
const restartsPerJob = 3

// restartGrace is --grace of these jobs. Some of their workers need longer to save.
const restartGrace = time.Second

// A fault campaign for jobs that restart: trainings on 3 hosts, each with faults one after another.
// Each job ends with the parameters of an undisturbed training, or with the exit code and the report
// of the fault that ended it. Nothing of an attempt is left when the next one begins, and the ranks of
// a group are all of one attempt. A job is the same in every campaign with its seed.
func TestChaosOfRestarts(t *testing.T) {
	plain, etcd := startRestartClusters(t, false), startRestartClusters(t, true)
	undisturbed := &restartJob{torch: true, restartSetting: restartSettings[0], number: -1,
		current: &restartFault{}}
	c := <-plain
	t.Run("undisturbed", func(t *testing.T) { undisturbed.run(t, c) })
	plain <- c
	jobs := planRestartJobs(*chaosSeed, *chaosFaults)
	var scenarios []scenario
	for _, r := range jobs {
		r.trained = undisturbed.trained
		clusters := plain
		if r.etcd {
			clusters = etcd
		}
		scenarios = append(scenarios, scenario{r.String(), func(t *testing.T) {
			c := <-clusters
			defer func() { clusters <- c }()
			r.run(t, c)
		}})
	}
	runConcurrently(t, scenarios)
	t.Log("\n" + restartTable(jobs))
}

// A restartJob is one job of a campaign.
type restartJob struct {
	restartSetting
	number int
	torch  bool
	faults []*restartFault
	random *rand.Rand

	*job
	cluster restartCluster
	report  string // path
	attempt int    // that runs, or is about to start
	hosts   []int  // of the workers, by node rank
	spare   int    // the host of the spare; 0 if there is none
	lost    bool   // an agent, and the job went on
	left    []int  // hosts of agents that were lost and not started again
	// preempted: an agent has left the job, which went on.
	preempted bool
	current   *restartFault
	printed   map[*process]int // how many lines before the present fault
	trained   []string         // by an undisturbed training with torch
}

// A restartFault is one fault of a job.
type restartFault struct {
	restartKind
	at         string
	host       int   // of the agent or the link
	ranks      []int // that may have failed first; nil is any
	ran, right bool
}

func (f *restartFault) String() string { return f.name + " " + f.at }

func (r *restartJob) String() string {
	var faults []string
	for _, f := range r.faults {
		faults = append(faults, f.String())
	}
	program := ""
	if r.torch {
		program = " torch"
	}
	return fmt.Sprintf("%d %s%s: %s", r.number, r.restartSetting.name, program,
		strings.Join(faults, ", "))
}

// run runs the job with its faults and checks how it ends.
func (r *restartJob) run(t *testing.T, c restartCluster) {
	t.Cleanup(func() { // after the checks of the place
		if r.current != nil {
			r.current.ran, r.current.right = true, !t.Failed()
		}
	})
	r.begin(t, c)
	code := 0
	for _, f := range r.faults {
		if r.current != nil {
			r.current.ran, r.current.right = true, true
		}
		r.current = f
		r.await(f.at)
		before := r.attempt
		for _, command := range r.commands {
			lines, _ := command.output()
			r.printed[command] = len(lines)
		}
		f.cause(r)
		switch f.effect {
		case restarts:
			if !f.moves || before == restartsPerJob { // otherwise see replace
				r.attempt++
			}
			if r.attempt > restartsPerJob {
				code = f.code
			}
		case ends:
			code = f.code
		}
		if code != 0 {
			break
		}
	}
	if code == 0 {
		r.ranksOf(r.attempt)
		r.finish()
	}
	r.checkEnd(code, r.current)
}

// begin starts the job.
func (r *restartJob) begin(t *testing.T, c restartCluster) {
	t.Helper()
	flags := append(c.flags(r.jobName()), "--max-restarts", fmt.Sprint(restartsPerJob),
		"--peer-timeout", restartPeerTimeout.String(), "--grace", restartGrace.String())
	if r.withSpare {
		flags = append(flags, "--spares", "1")
	}
	program := []string{self, "trainer", jobDir}
	if r.torch {
		program = c.torchTraining()
	}
	r.cluster, r.report = c, filepath.Join(c.root, fmt.Sprint("report", r.number))
	if r.under == "slurm" {
		c.run(c.slurm("wait", fmt.Sprint(restartHosts)))
	}
	c.jobEnv = []string{"RDZV_REPORT=" + r.report}
	r.job = c.startJob(t, r.under, restartHosts, flags, program)
	r.hosts, r.printed = []int{1, 2, 3}, map[*process]int{}
	if r.withSpare {
		r.startSpare()
	}
}

// await waits for the moment of a fault.
func (r *restartJob) await(at string) {
	r.t.Helper()
	switch at {
	case atStart:
		pattern := filepath.Join(r.records(), fmt.Sprint(r.attempt), "*")
		if !eventually(waitLimit, func() bool { f, _ := filepath.Glob(pattern); return len(f) > 0 }) {
			r.t.Fatalf("attempt %d has not started", r.attempt)
		}
	case atWork:
		r.note(r.ranksOf(r.attempt))
		r.pause(300 * time.Millisecond)
	case between:
		text := fmt.Sprintf("(restart %d of %d)", r.attempt, restartsPerJob)
		if !eventually(waitLimit, func() bool { return len(r.linesWith(text)) > 0 }) {
			r.t.Fatalf("no line with %q", text)
		}
		r.pause(time.Second)
	}
}

// pause lets a random part of a time pass, in which the job may get anywhere.
func (r *restartJob) pause(most time.Duration) {
	part := time.Duration(r.random.Int64N(int64(most)))
	eventually(part, func() bool { return false })
}

// note notes the workers of an attempt whose ranks have all started.
func (r *restartJob) note(ranks [][]string) {
	r.workers = make([]record, len(ranks))
	for rank, fields := range ranks {
		if _, err := fmt.Sscan(fields[0], &r.workers[rank].PID); err != nil {
			r.t.Fatal(err)
		}
	}
	if r.agentsBy == nil {
		r.agentsBy = map[int]int{}
	}
	maps.Copy(r.agentsBy, r.agentsByParent())
}

func (r *restartJob) finish() {
	if err := os.WriteFile(filepath.Join(r.records(), "finish"), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// startRankServers starts a server of testbed/ranks.py on each of n hosts.
func (c *cluster) startRankServers(n int) {
	c.t.Helper()
	for host := range n {
		socket := filepath.Join(c.root, fmt.Sprint("node", host+1))
		script := filepath.Join(testbed, "ranks.py")
		server := c.startWith([]string{"OMP_NUM_THREADS=1"},
			c.on(host+1, python, script, "serve", socket)...)
		c.t.Cleanup(func() {
			kill(server.pid())
			<-server.done
		})
		server.waitFor("listening")
	}
}

// torchTraining is the command line of a rank that trains with torch, on any of these hosts. torch
// 2.6 leaves temporary files when it is killed.
func (c *cluster) torchTraining() []string {
	const script = `RANKS_DIR=$0 TMPDIR=$0 exec "$1" -IS "$2" train "$3/$(hostname)"`
	return []string{"sh", "-c", script, jobDir, python, filepath.Join(testbed, "ranks.py"), c.root}
}
