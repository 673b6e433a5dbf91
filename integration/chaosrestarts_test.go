package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// A fault campaign for jobs that restart: trainings on 3 hosts, each with faults one after another.
// Each job ends with the parameters of an undisturbed training, or with the exit code and the report
// of the fault that ended it. Nothing of an attempt is left when the next one begins, and the ranks of
// a group are all of one attempt. A job is the same in every campaign with its seed.
func TestChaosOfRestarts(t *testing.T) {
	clusters := make(chan *cluster, *atOnce) // a host that is disconnected is that of one job
	for range *atOnce {
		c := newCluster(t, 3)
		c.startSlurm(1, 3)
		c.startRankServers(3)
		clusters <- c
	}
	undisturbed := &restartJob{torch: true, launcher: "direct", number: -1, current: &restartFault{}}
	c := <-clusters
	t.Run("undisturbed", func(t *testing.T) { undisturbed.run(t, c) })
	clusters <- c
	jobs := planRestartJobs(*chaosSeed, *chaosFaults)
	var scenarios []scenario
	for _, r := range jobs {
		r.printed = undisturbed.printed
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
	number   int
	launcher string
	torch    bool
	faults   []*restartFault
	random   *rand.Rand

	*job
	cluster *cluster
	report  string // path
	attempt int    // that runs, or is about to start
	waits   int    // how often agents were waited for
	lost    bool   // an agent, in whose place another one was started
	current *restartFault
	printed []string // by an undisturbed training with torch
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
	return fmt.Sprintf("%d %s%s: %s", r.number, r.launcher, program, strings.Join(faults, ", "))
}

// planRestartJobs draws jobs with n faults in total. A fault that ends a job is its last.
func planRestartJobs(seed uint64, n int) (jobs []*restartJob) {
	for n > 0 {
		number := len(jobs)
		random := rand.New(rand.NewPCG(seed, uint64(number)))
		torch := number%torchShare == torchShare-1
		r := &restartJob{number: number, random: random, torch: torch,
			launcher: jobLaunchers[(number+number/torchShare)%len(jobLaunchers)]}
		for want := min(n, 1+random.IntN(restartsPerJob+2)); want > 0; want-- {
			f := drawFault(random, r.launcher, torch)
			if f.at == between && r.restarts() == 0 {
				f.at = atWork
			}
			r.faults = append(r.faults, f)
			n--
			if f.ends() || r.restarts() > restartsPerJob {
				break
			}
		}
		jobs = append(jobs, r)
	}
	return jobs
}

// drawFault draws a fault. One of three ends its job.
func drawFault(random *rand.Rand, launcher string, torch bool) *restartFault {
	last := random.IntN(3) == 0
	for {
		k := restartKinds[random.IntN(len(restartKinds))]
		f := &restartFault{restartKind: k, at: k.at[random.IntN(len(k.at))], host: 1 + random.IntN(3)}
		if k.moves && launcher == "direct" && (f.host != storeHost || k.name == "link") {
			f.effect = restarts
		}
		if f.ends() == last && !(torch && k.light) {
			return f
		}
	}
}

// restarts is the number of faults after which the workers are restarted, if restarts remain.
func (r *restartJob) restarts() (n int) {
	for _, f := range r.faults {
		if f.effect == restarts {
			n++
		}
	}
	return n
}

// run runs the job with its faults and checks how it ends.
func (r *restartJob) run(t *testing.T, c *cluster) {
	t.Cleanup(func() { // after the checks of the place
		if r.current != nil {
			r.current.ran, r.current.right = true, !t.Failed()
		}
	})
	flags := []string{"--max-restarts", fmt.Sprint(restartsPerJob), "--peer-timeout", "5s",
		"--grace", "300ms"}
	program := []string{self, "trainer", jobDir}
	if r.torch {
		program = c.torchTraining()
	}
	c.jobEnv = []string{"RDZV_REPORT=" + filepath.Join(c.root, fmt.Sprint("report", r.number))}
	r.cluster, r.report = c, strings.TrimPrefix(c.jobEnv[0], "RDZV_REPORT=")
	r.job = c.startJob(t, r.launcher, 3, flags, program)
	code := 0
	for _, f := range r.faults {
		if r.current != nil {
			r.current.ran, r.current.right = true, true
		}
		r.current = f
		r.await(f.at)
		before := r.attempt
		f.cause(r)
		switch f.effect {
		case restarts:
			if !f.moves || before == restartsPerJob { // otherwise see startAgain
				r.attempt++
			}
			if r.attempt > restartsPerJob {
				code = f.code
			}
		case ends:
			code = f.code
		}
	}
	if code == 0 {
		r.ranksOf(r.attempt)
		r.finish()
	}
	r.checkEnd(code, r.current)
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

// checkEnd checks how the job ended, after the last fault.
func (r *restartJob) checkEnd(code int, last *restartFault) {
	t := r.t
	for _, command := range r.commands {
		if got := command.code(); (got == 0) != (code == 0) {
			t.Errorf("%s ended with exit code %d, want %d", command.program(), got, code)
		}
	}
	codes := []int{code}
	if r.lost {
		codes = append(codes, 123)
	}
	r.checkAgentCodes(codes...)
	for _, name := range []string{"alive", "mixed"} {
		if text, err := os.ReadFile(filepath.Join(r.records(), name)); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
	found, _ := filepath.Glob(filepath.Join(r.records(), "[0-9]"))
	if len(found) > r.attempt+1 || len(found) < min(r.attempt, restartsPerJob) {
		t.Errorf("%d attempts have started, want %d", len(found), r.attempt+1)
	}
	if code == 0 && r.torch {
		r.checkTorch()
	} else if code == 0 {
		v, err := loadSnapshot(r.records())
		want := trainedUntil(v.Epoch, r.ranks)
		if err != nil || v != want || len(r.linesWith("parameters "+want.String())) != 1 {
			t.Errorf("the training ended with %v and printed %q, want %v (%v)", v,
				r.linesWith("parameters "), want, err)
		}
	} else {
		r.checkReport(code, last)
	}
	if last.kills || r.lost {
		r.removeLeftovers()
	}
}

// checkTorch compares the parameters with those of the undisturbed training, which is the first.
func (r *restartJob) checkTorch() {
	lines := r.linesWith("parameters ", "the same on all")
	if r.printed == nil {
		r.printed = lines
	}
	if len(lines) != 1 || !slices.Equal(lines, r.printed) {
		r.t.Errorf("the training printed %q, want %q", lines, r.printed)
	}
}

// checkReport checks the file of --report. A worker that failed is that which the fault names.
func (r *restartJob) checkReport(code int, last *restartFault) {
	var report struct {
		Kind     string
		Rank     int
		ExitCode int `json:"exit_code"`
		Attempt  int
	}
	text, err := os.ReadFile(r.report)
	if os.IsNotExist(err) && last.kills {
		return // the agent that writes it was killed
	}
	if err == nil {
		err = json.Unmarshal(text, &report)
	}
	attempt := min(r.attempt, restartsPerJob)
	before := last.at == between && report.Attempt == attempt-1
	if err != nil || report.ExitCode != code || report.Attempt != attempt && !before ||
		report.Kind == "failed" && last.ranks != nil && !slices.Contains(last.ranks, report.Rank) {
		r.t.Errorf("the report is %s, want exit code %d in attempt %d, ranks %v (%v)", text, code,
			attempt, last.ranks, err)
	}
}

// restartTable counts, by fault and launcher, the faults with the right effect, of those that ran.
func restartTable(jobs []*restartJob) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-40s", "fault")
	for _, launcher := range jobLaunchers {
		fmt.Fprintf(&b, "%12s", launcher)
	}
	right, ran := map[string]int{}, map[string]int{}
	var names []string
	count := func(f *restartFault, keys ...string) {
		for _, key := range keys {
			ran[key]++
			if f.right {
				right[key]++
			}
		}
	}
	for _, r := range jobs {
		for _, f := range r.faults {
			if f.ran {
				names = append(names, f.String())
				count(f, f.String()+r.launcher, "")
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		fmt.Fprintf(&b, "\n%-40s", name)
		for _, launcher := range jobLaunchers {
			key := name + launcher
			fmt.Fprintf(&b, "%12s", fmt.Sprintf("%d of %d", right[key], ran[key]))
		}
	}
	return fmt.Sprintf("%s\nright: %d of %d, in %d jobs\n", &b, right[""], ran[""], len(jobs))
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

// torchTraining is the command line of a rank that trains with torch, on any of these hosts.
func (c *cluster) torchTraining() []string {
	const script = `RANKS_DIR=$0 exec "$1" -IS "$2" train "$3/$(hostname)"`
	return []string{"sh", "-c", script, jobDir, python, filepath.Join(testbed, "ranks.py"), c.root}
}
