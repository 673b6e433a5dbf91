package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A localProblem prevents the agents of one node from running their workers.
type localProblem struct {
	name    string
	setup   string   // shell code that runs before each agent
	flags   []string // after those of the launcher
	program string
	code    int
	lines   []string // texts that lines of the agents must contain
}

// masterPort is the port on which another program listens on node1.
const masterPort = "29411"

// Most problems are on node2. MASTER_PORT is used only on rank 0's node.
var localProblems = []localProblem{
	{
		"gpu",
		`export CUDA_VISIBLE_DEVICES=; [ $(hostname) = node2 ] || CUDA_VISIBLE_DEVICES=0,1`,
		[]string{"--nproc-per-node", "gpu"}, "true", 121,
		[]string{"rdzv: cannot start one worker per GPU: no device is visible (on node2)"},
	},
	{
		"masterPort", ":", []string{"--master-port", masterPort}, "true", 121,
		[]string{"rdzv: cannot reserve port " + masterPort +
			": bind: address already in use (by pid "},
	},
	{
		"openFiles", `[ $(hostname) = node1 ] || ulimit -n 100`,
		[]string{"--nproc-per-node", "32"}, "true", 121,
		[]string{"rdzv: cannot start 32 workers: open-file limit too low: 100 ("},
	},
	{
		"runtimeDir",
		`[ $(hostname) = node1 ] || { unset XDG_RUNTIME_DIR; export TMPDIR=/no/such; }`,
		nil, "true", 121,
		[]string{`rdzv: cannot create the runtime directory "/no/such/rdzv-`},
	},
	{
		"report", `[ $(hostname) = node1 ] || export RDZV_REPORT=/no/such/report`, nil, "true", 125,
		[]string{`rdzv: cannot write the report "/no/such/report": no such file or directory (on node2)`},
	},
	{
		"several",
		`export CUDA_VISIBLE_DEVICES=
		[ $(hostname) = node1 ] && PATH=/usr/bin:/bin || PATH=/bin:/usr/bin`,
		[]string{"--nproc-per-node", "gpu", "--master-port", masterPort}, "no-such-program", 127,
		[]string{
			`rdzv: cannot run "no-such-program": not found in PATH "/usr/bin:/bin" (on node1)`,
			`rdzv: cannot run "no-such-program": not found in PATH "/bin:/usr/bin" (on node2)`,
			"rdzv: cannot start one worker per GPU: no device is visible (on node1, node2)",
			"rdzv: cannot reserve port " + masterPort +
				": bind: address already in use (by pid ",
		},
	},
}

// listenForever is a Python program that listens on a port.
const listenForever = `import signal, socket, sys
s = socket.create_server(('', int(sys.argv[1])))
print('listening', flush=True)
signal.pause()`

// All agents report the problems of any node at once and exit with the same code. They do not wait
// for --join-timeout.
func TestLocalProblems(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	other := c.start(c.on(1, python, "-c", listenForever, masterPort)...)
	t.Cleanup(func() { other.signal(syscall.SIGKILL); other.code() })
	other.waitFor("listening")
	var all []variant
	for _, launcher := range jobLaunchers {
		for _, problem := range localProblems {
			name := launcher + "/" + problem.name
			all = append(all, variant{problem.name, launcher, scenario{name, func(t *testing.T) {
				c.runWithProblem(t, launcher, problem)
			}}})
		}
	}
	runConcurrently(t, selected(all))
}

func (c *cluster) runWithProblem(t *testing.T, launcher string, problem localProblem) {
	flags := slices.Concat([]string{"--join-timeout", "30s"}, problem.flags)
	setup := []string{"sh", "-c", problem.setup + `; exec "$@"`, "sh"}
	j := c.startJob(t, launcher, 2, flags, []string{problem.program}, setup...)
	j.checkCommands(problem.code)
	took := time.Since(j.commands[0].started).Round(time.Millisecond)
	t.Logf("the job ended after %v", took)
	if took > 20*time.Second {
		t.Errorf("the job ended after %v, want at most 20s", took)
	}
	j.compareAgentCodes(problem.code)
	j.checkEndTimes()
	lines := j.linesWith("rdzv:")
	for _, want := range problem.lines {
		contains := func(line string) bool { return strings.Contains(line, want) }
		if !slices.ContainsFunc(lines, contains) {
			t.Errorf("the agents printed %q, want a line with %q", lines, want)
		}
	}
}

// checkEndTimes checks that the last agent ended shortly after the first.
func (j *job) checkEndTimes() {
	j.t.Helper()
	var ends []time.Time
	files, _ := filepath.Glob(filepath.Join(j.codes, "*"))
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			j.t.Fatal(err)
		}
		ends = append(ends, info.ModTime())
	}
	if len(ends) == 0 {
		j.t.Fatal("no agent has an exit code")
	}
	first, last := slices.MinFunc(ends, time.Time.Compare), slices.MaxFunc(ends, time.Time.Compare)
	if apart := last.Sub(first); apart > 2*time.Second {
		j.t.Errorf("the last agent ended %v after the first, want at most 2s", apart)
	}
}
