package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A failureCase is a way in which a Python program fails, and the report of it.
type failureCase struct {
	name    string
	program string // of rank 1
	code    int
	lines   []string // texts in lines of the report
}

var failureCases = []failureCase{
	{"exception", `
def step(batch):
    raise ValueError("batch %d is empty" % batch)
step(17)`, 1, []string{
		"message  ValueError: batch 17 is empty", "| Traceback (most recent call last):",
		", in step", "| ValueError: batch 17 is empty",
	}},
	{"cause", `
try:
    open("/no/such/file")
except OSError as e:
    raise RuntimeError("no data") from e`, 1, []string{
		"message  RuntimeError: no data", "| FileNotFoundError: ",
		"The above exception was the direct cause", "| RuntimeError: no data",
	}},
	{"exit", `print("gave up on the data", file=sys.stderr); sys.exit(41)`, 41, []string{
		"how      exit 41 after", "message  gave up on the data", "| gave up on the data",
	}},
	{"text", `sys.exit("no data")`, 1, []string{"how      exit 1 after", "message  no data"}},
	{"module", `os.execv(sys.executable, [sys.executable, "-m", "nosuch"])`, 1, []string{
		": No module named nosuch",
	}},
	{"file", `os.execv(sys.executable, [sys.executable, "nosuch.py"])`, 2, []string{
		"message  ", ": can't open file '", "[Errno 2] No such file or directory",
	}},
	{"syntax", `
open("bad.py", "w").write("x =\n")
os.execv(sys.executable, [sys.executable, "bad.py"])`, 1, []string{"message  SyntaxError: invalid syntax (bad.py, line 1)"}},
	{"segv", `
import ctypes
def crash(): ctypes.string_at(0)
crash()`, 128 + 11, []string{
		"how      killed by SIGSEGV after", "message  Fatal Python error: Segmentation fault",
		"in crash",
	}},
	{"abort", `
def give_up(): os.abort()
give_up()`, 128 + 6, []string{
		"how      killed by SIGABRT after", "message  Fatal Python error: Aborted", "in give_up",
	}},
	{"kill", `os.kill(os.getpid(), 9)`, 128 + 9, []string{"how      killed by SIGKILL after"}},
	{"noise", `
print("lots of progress\rprogress 100%", file=sys.stderr)
print("\x1b[31mred\x1b[0m", file=sys.stderr); sys.exit(2)`, 2, []string{
		"| progress 100%", "| red",
	}},
}

// One agent prints the report of a failure as the last of rdzv's lines. It has the rank, the host,
// how the worker ended, and its last lines of stderr, as far as
// these were not shown. --report writes the same as JSON.
func TestFailureReports(t *testing.T) {
	t.Parallel()
	var all []variant
	for _, f := range failureCases {
		variants := underLaunchers(f.name, func(t *testing.T, l launcher) {
			p := l.place(t)
			file := filepath.Join(p.dir("job"), "report.json")
			// The other ranks still run when rank 1 fails, and are stopped.
			source := "import os, sys, time\n" +
				"if os.environ['RANK'] != '1': time.sleep(1000)\n" + f.program
			program := []string{python, "-c", source}
			job := p.start(l.command(p, 3, []string{"--report", file, "--show", "none"}, program)...)
			job.checkCode(f.code)
			checkReport(t, l, job, f)
			checkReportFile(t, file, f)
		})
		if f.name != "cause" && f.name != "segv" {
			variants = variants[:1] // these two show how a launcher passes on output and signals
		}
		all = append(all, variants...)
	}
	runConcurrently(t, selected(all))
}

func checkReport(t *testing.T, l launcher, job *process, f failureCase) {
	t.Helper()
	lines := job.linesWith("rdzv: ")
	if n := len(job.linesWith("rdzv: rank 1 of 3 failed first")); n != 1 {
		t.Fatalf("rdzv printed %q with %d reports, want 1", lines, n)
	}
	for _, want := range append(f.lines, "local rank 1, pid ", "program  "+python+" -c ") {
		if len(job.linesWith("rdzv:   ", want)) == 0 {
			t.Errorf("no line of the report contains %q", want)
		}
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "rdzv:   ") {
		t.Errorf("after the report rdzv printed %q, want nothing", last)
	}
}

func checkReportFile(t *testing.T, file string, f failureCase) {
	t.Helper()
	var got struct {
		Kind      string
		Rank, PID int
		LocalRank int `json:"local_rank"`
		WorldSize int `json:"world_size"`
		ExitCode  int `json:"exit_code"`
		Host      string
		Program   []string
		Seconds   float64
		Stderr    []string
		Others    []any
	}
	text := readReport(t, file, &got)
	if got.Kind != "failed" || got.Rank != 1 || got.LocalRank != 1 || got.WorldSize != 3 ||
		got.ExitCode != f.code {
		t.Errorf("the report is %s\nwant kind failed, rank 1, local rank 1 of 3, exit code %d",
			text, f.code)
	}
	if got.PID == 0 || got.Host == "" || len(got.Program) != 3 || got.Seconds <= 0 {
		t.Errorf("the report is %s\nwant pid, host, program and seconds in it", text)
	}
	if len(got.Others) != 0 {
		t.Errorf("the report is %s\nwant no other failures in it", text)
	}
	isStderr := func(line string) bool { return strings.HasPrefix(line, "| ") }
	if slices.ContainsFunc(f.lines, isStderr) && len(got.Stderr) == 0 {
		t.Errorf("the report is %s\nwant lines of stderr in it", text)
	}
}

// readReport reads a report into a struct, and returns its text.
func readReport(t *testing.T, file string, report any) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, report); err != nil {
		t.Fatalf("the report is not JSON: %v in %s", err, text)
	}
	return text
}

func checkReportKind(t *testing.T, file, want string) {
	t.Helper()
	var got struct{ Kind string }
	readReport(t, file, &got)
	if got.Kind != want {
		t.Errorf("the report is of kind %q, want %q", got.Kind, want)
	}
}

// A job that succeeds replaces the report of an earlier job, which failed.
func TestReportOfSuccess(t *testing.T) {
	forEachLauncher(t, func(t *testing.T, l launcher) {
		p := l.place(t)
		file := filepath.Join(p.dir("job"), "report.json")
		for _, code := range []int{3, 0} {
			program := []string{"sh", "-c", `exit $(($0 * (RANK == 1)))`, strconv.Itoa(code)}
			p.start(l.command(p, 2, []string{"--report", file}, program)...).checkCode(code)
		}
		checkReportKind(t, file, "success")
	})
}

// If an agent is killed, another one writes the report, whether the killed one hosted the store or
// not.
func TestReportOfLostAgent(t *testing.T) {
	for _, rank := range []int{0, 1} {
		t.Run("rank "+strconv.Itoa(rank), func(t *testing.T) {
			p := newPlace(t)
			dir := p.dir("job")
			file := filepath.Join(dir, "report")
			flags := []string{"--nodes", "2", "--store", freeAddress(t), "--report", file}
			lines := onOneHost(2, append(flags, "-v"), worker("wait", dir))
			agents := []*process{p.start(lines[0]...)}
			agents[0].waitFor("hosting the store")
			agents = append(agents, p.start(lines[1]...))
			kill(agentAbove(records(t, dir, 2)[rank].PID))
			codes := []int{agents[0].code(), agents[1].code()}
			if slices.Sort(codes); !slices.Equal(codes, []int{123, 137}) {
				t.Errorf("the agents ended with the exit codes %v, want 123 and 137", codes)
			}
			checkReportKind(t, file, "lost")
			p.removeFiles()
		})
	}
}

// Ranks that fail by themselves before they are stopped are listed below the first.
func TestOtherFailures(t *testing.T) {
	p := newPlace(t)
	script := `trap 'exit 9' TERM; if [ $RANK = 0 ]; then sleep 1000 & wait; fi; exit 1$RANK`
	job := p.start(direct(p, 3, nil, []string{"sh", "-c", script})...)
	code := job.code()
	if code != 11 && code != 12 {
		t.Fatalf("rdzv ended with exit code %d, want 11 or 12", code)
	}
	first, other := strconv.Itoa(code-10), strconv.Itoa(3-(code-10))
	if n := len(job.linesWith("rank " + first + " of 3 failed first")); n != 1 {
		t.Errorf("%d reports are about rank %s, want 1", n, first)
	}
	lines := job.linesWith("failed on its own too")
	if len(lines) > 1 || len(lines) == 1 && !strings.Contains(lines[0], "rank "+other+" ") {
		t.Errorf("the report lists as other failures %q, want only rank %s", lines, other)
	}
}

// eatMemory is a Python program whose rank 1 allocates memory for ever.
const eatMemory = `import os, time
if os.environ["RANK"] == "0": time.sleep(1000)
b = []
while True: b.append(bytearray(1 << 20))`

// If the kernel kills a worker because memory has run out, the report says so.
func TestOutOfMemory(t *testing.T) {
	p := newPlace(t)
	group := memoryGroup(t, 64<<20)
	enter := []string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group}
	job := p.start(append(enter, direct(p, 2, nil, []string{python, "-c", eatMemory})...)...)
	job.checkCode(128 + 9)
	if n := len(job.linesWith("out-of-memory killer")); n != 1 {
		t.Errorf("%d lines of the report mention the lack of memory, want 1", n)
	}
}
