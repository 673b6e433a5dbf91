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

// A localProblem keeps the agents of one node from running their workers.
type localProblem struct {
	name  string
	setup string   // shell code that each agent runs first
	flags []string // after those of the launcher
	prog  string
	code  int
	says  []string // each in a line of its own
}

// masterPort is what another program listens on, on node1.
const masterPort = "29411"

// Most are on node2. MASTER_PORT matters on rank 0's node alone.
var localProblems = []localProblem{
	{
		"gpu", `export CUDA_VISIBLE_DEVICES=; [ $(hostname) = node2 ] || CUDA_VISIBLE_DEVICES=0,1`,
		[]string{"--nproc-per-node", "gpu"}, "true", 121,
		[]string{"rdzv: cannot start one worker per GPU: no device is visible (on node2)"},
	},
	{
		"masterPort", ":", []string{"--master-port", masterPort}, "true", 121,
		[]string{"rdzv: cannot reserve port " + masterPort + ": bind: address already in use (on node1)"},
	},
	{
		"openFiles", `[ $(hostname) = node1 ] || ulimit -n 100`, []string{"--nproc-per-node", "32"}, "true", 121,
		[]string{"rdzv: cannot start 32 workers: open-file limit too low: 100 ("},
	},
	{
		"runtimeDir", `[ $(hostname) = node1 ] || { unset XDG_RUNTIME_DIR; export TMPDIR=/no/such; }`, nil, "true", 121,
		[]string{`rdzv: cannot create the runtime directory "/no/such/rdzv-`},
	},
	{
		"several", `export CUDA_VISIBLE_DEVICES=; [ $(hostname) = node1 ] && PATH=/usr/bin:/bin || PATH=/bin:/usr/bin`,
		[]string{"--nproc-per-node", "gpu", "--master-port", masterPort}, "no-such-program", 127,
		[]string{
			`rdzv: cannot run "no-such-program": not found in PATH "/usr/bin:/bin" (on node1)`,
			`rdzv: cannot run "no-such-program": not found in PATH "/bin:/usr/bin" (on node2)`,
			"rdzv: cannot start one worker per GPU: no device is visible (on node1, node2)",
			"rdzv: cannot reserve port " + masterPort + ": bind: address already in use (on node1)",
		},
	},
}

// What keeps one node from running its workers is told at once on all, which end with the same code. Nobody waits for
// --join-timeout.
func TestLocalProblems(t *testing.T) {
	f := newField(t)
	taken := f.start(f.on(1, python, "-c", "import socket, signal; s = socket.create_server(('', "+masterPort+")); print('listening', flush=True); signal.pause()")...)
	t.Cleanup(func() { taken.signal(syscall.SIGKILL); taken.code() })
	taken.waitFor("listening")
	var scenarios []scenario
	for _, launcher := range jobLaunchers {
		for _, p := range localProblems {
			scenarios = append(scenarios, scenario{launcher + "/" + p.name, func(t *testing.T) { f.runWithProblem(t, launcher, p) }})
		}
	}
	runConcurrently(t, scenarios)
}

func (f *field) runWithProblem(t *testing.T, launcher string, p localProblem) {
	flags := slices.Concat([]string{"--join-timeout", "30s"}, p.flags)
	j := f.startJob(t, launcher, 2, flags, []string{p.prog}, "sh", "-c", p.setup+`; exec "$@"`, "sh")
	var lines []string
	for _, c := range j.commands {
		if code := c.code(); code != p.code {
			t.Errorf("%q ended with %d, want %d", c.argv, code, p.code)
		}
		lines = append(lines, c.linesWith("rdzv:")...)
	}
	took := time.Since(j.commands[0].started)
	t.Logf("all had ended after %v", took.Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("it took %v until all had ended", took.Round(time.Millisecond))
	}
	j.checkTogether(p.code)
	for _, text := range p.says {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, text) }) {
			t.Errorf("nobody said %q in %q", text, lines)
		}
	}
}

// checkTogether: all agents have ended with that code, and as soon as the first.
func (j *job) checkTogether(want int) {
	j.t.Helper()
	for _, code := range j.agentCodes() {
		if code != want {
			j.t.Errorf("an agent ended with %d, want %d", code, want)
		}
	}
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
		j.t.Fatal("no agent has noted its exit code")
	}
	first, last := slices.MinFunc(ends, time.Time.Compare), slices.MaxFunc(ends, time.Time.Compare)
	if apart := last.Sub(first); apart > 2*time.Second {
		j.t.Errorf("the last agent ended %v after the first", apart.Round(time.Millisecond))
	}
}
