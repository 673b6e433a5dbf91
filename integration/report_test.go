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

// A reason is a way in which an ordinary Python program fails, and what the user is told of it.
type failureCase struct {
	name    string
	program string // of rank 1
	code    int
	words   []string // in the report, each on a line of it
}

var failureCases = []failureCase{
	{"exception", `
def step(batch):
    raise ValueError("batch %d is empty" % batch)
step(17)`, 1, []string{"message  ValueError: batch 17 is empty", `| Traceback (most recent call last):`, ", in step", "| ValueError: batch 17 is empty"}},
	{"cause", `
try:
    open("/no/such/file")
except OSError as e:
    raise RuntimeError("no data") from e`, 1, []string{"message  RuntimeError: no data", "| FileNotFoundError: ", "The above exception was the direct cause", "| RuntimeError: no data"}},
	{"exit", `print("gave up on the data", file=sys.stderr); sys.exit(41)`, 41, []string{"how      exit 41 after", "| gave up on the data"}},
	{"segv", `
import ctypes
def crash(): ctypes.string_at(0)
crash()`, 128 + 11, []string{"how      killed by SIGSEGV after", "message  Fatal Python error: Segmentation fault", "in crash"}},
	{"abort", `
def give_up(): os.abort()
give_up()`, 128 + 6, []string{"how      killed by SIGABRT after", "message  Fatal Python error: Aborted", "in give_up"}},
	{"kill", `os.kill(os.getpid(), 9)`, 128 + 9, []string{"how      killed by SIGKILL after"}},
	{"noise", `
print("lots of progress\rprogress 100%", file=sys.stderr)
print("\x1b[31mred\x1b[0m", file=sys.stderr); sys.exit(2)`, 2, []string{"| progress 100%", "| [31mred[0m"}},
}

// The report is told once, by one agent, as the last of rdzv's words, and names the rank, the place, the way and the words
// of the failure; --report writes the same as JSON.
func TestFailureReports(t *testing.T) {
	for _, r := range failureCases {
		t.Run(r.name, func(t *testing.T) {
			forEachLauncher(t, func(t *testing.T, l launcher) {
				if l.name != "byhand" && r.name != "cause" && r.name != "segv" {
					return // how a launcher passes on words and deaths these two tell
				}
				p := l.place(t)
				file := filepath.Join(p.dir("job"), "report.json")
				// The others are still there when rank 1 fails, and are stopped.
				program := "import os, sys, time\nif os.environ['RANK'] != '1': time.sleep(1000)\n" + r.program
				job := p.start(l.line(p, 3, []string{"--report", file}, []string{python, "-c", program})...)
				if code := job.code(); code != r.code {
					t.Errorf("the launcher ended with %d, want %d", code, r.code)
				}
				checkReport(t, l, job, r)
				checkReportFile(t, file, r)
			})
		})
	}
}

func checkReport(t *testing.T, l launcher, job *process, r failureCase) {
	t.Helper()
	said := job.linesWith("rdzv: ")
	if n := len(job.linesWith("rdzv: rank 1 of 3 failed first")); n != 1 {
		t.Fatalf("%d reports in %q", n, said)
	}
	for _, want := range append(r.words, "local rank 1, pid ", "program  "+python+" -c ") {
		if len(job.linesWith("rdzv:   ", want)) == 0 {
			t.Errorf("no line of the report says %q", want)
		}
	}
	if l.name != "byhand" {
		// The other agents have written why the job ended before, but a launcher reads the output of
		// its tasks one task after the other.
		said = slices.DeleteFunc(said, func(line string) bool {
			return strings.HasPrefix(line, "rdzv: rank 1 failed first: ")
		})
	}
	if last := said[len(said)-1]; !strings.HasPrefix(last, "rdzv:   ") {
		t.Errorf("the last of rdzv's lines is %q, behind the report", last)
	}
}

func checkReportFile(t *testing.T, file string, r failureCase) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if got.Kind != "failed" || got.Rank != 1 || got.LocalRank != 1 || got.WorldSize != 3 || got.ExitCode != r.code || got.PID == 0 || got.Host == "" ||
		len(got.Program) != 3 || got.Seconds <= 0 || len(got.Others) != 0 {
		t.Errorf("the report is %s", text)
	}
	quoted := slices.ContainsFunc(r.words, func(words string) bool { return strings.HasPrefix(words, "| ") })
	if quoted && len(got.Stderr) == 0 { // only the agent of the worker has it
		t.Errorf("the report has no lines of stderr: %s", text)
	}
}

// A job that succeeds replaces the report of the one that failed before it.
func TestReportOfSuccess(t *testing.T) {
	forEachLauncher(t, func(t *testing.T, l launcher) {
		p := l.place(t)
		file := filepath.Join(p.dir("job"), "report.json")
		for _, code := range []int{3, 0} {
			program := []string{"sh", "-c", `exit $(($0 * (RANK == 1)))`, strconv.Itoa(code)}
			if got := p.start(l.line(p, 2, []string{"--report", file}, program)...).code(); got != code {
				t.Errorf("the launcher ended with %d, want %d", got, code)
			}
		}
		if kind := kindOfReport(t, file); kind != "success" {
			t.Errorf("the report is of kind %q", kind)
		}
	})
}

// When an agent is killed, another one writes the report, whether the store went with it or not.
func TestReportOfLostAgent(t *testing.T) {
	for _, rank := range []int{0, 1} {
		t.Run("rank "+strconv.Itoa(rank), func(t *testing.T) {
			p := newPlace(t)
			dir := p.dir("job")
			file := filepath.Join(dir, "report")
			line := rdzvExec([]string{"--nodes", "2", "--store", freeAddress(t), "--report", file}, worker("wait", dir))
			agents := []*process{p.start(line...), p.start(line...)}
			kill(parentOf(parentOf(records(t, dir, 2)[rank].PID)))
			codes := []int{agents[0].code(), agents[1].code()}
			if slices.Sort(codes); !slices.Equal(codes, []int{123, 137}) {
				t.Errorf("the agents ended with %v", codes)
			}
			if kind := kindOfReport(t, file); kind != "lost" {
				t.Errorf("the report is of kind %q", kind)
			}
			p.removeFiles()
		})
	}
}

func kindOfReport(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Kind string }
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return got.Kind
}

// recorded is a program that uses torch's own way to tell why it fails.
const recorded = `import os, time
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if os.environ["RANK"] == "0":
        time.sleep(1000)
    raise KeyError("of rank " + os.environ["RANK"])
main()
`

// What torch writes into TORCHELASTIC_ERROR_FILE is in the report.
func TestErrorFile(t *testing.T) {
	p := newPlace(t)
	job := p.start(openMPI(p, 2, nil, []string{python, "-c", recorded})...)
	if code := job.code(); code != 1 {
		t.Errorf("mpirun ended with %d, want 1", code)
	}
	for _, want := range []string{"message  KeyError: 'of rank 1'", `| KeyError: 'of rank 1'`, "in main"} {
		if len(job.linesWith("rdzv:   ", want)) == 0 {
			t.Errorf("no line of the report says %q", want)
		}
	}
}

// A program that torch runs inside a wrapper fails with this exception.
const recordedKey = `from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    raise KeyError("epoch")
main()
`

// The reason of a failure under torch's @record is the user's exception also where a wrapper around the program has
// another view of the system: the file that torch writes is found in another PID namespace, and where it is not found
// or cannot be opened, what the report repeats is not torch's complaint about that.
func TestErrorFileInsideWrapper(t *testing.T) {
	unshare := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		unshare = []string{"unshare", "--user", "--map-root-user", "--mount"}
	}
	wrappers := map[string][]string{
		"PID namespace": append(slices.Clone(unshare), "--pid", "--fork", "--mount-proc", "sh", "-c", `exec "$@" 2>/dev/null`, "sh"),
		"other TMPDIR":  append(slices.Clone(unshare), "sh", "-c", `mount -t tmpfs none "$TMPDIR" && exec "$@"`, "sh"),
	}
	if os.Geteuid() == 0 {
		wrappers["other user"] = []string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}
	}
	for name, wrapper := range wrappers {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			job := p.start(direct(p, 1, nil, append(wrapper, python, "-c", recordedKey))...)
			if code := job.code(); code != 1 {
				t.Errorf("rdzv ended with %d, want 1", code)
			}
			if len(job.linesWith("rdzv: rank 0 failed first: exit 1", ": KeyError: 'epoch'")) != 1 {
				t.Errorf("the exception is not named in %q", job.linesWith("rdzv: "))
			}
		})
	}
}

// Those that fail on their own before they are stopped are listed under the first.
func TestOtherFailures(t *testing.T) {
	p := newPlace(t)
	script := `trap 'exit 9' TERM; if [ $RANK = 0 ]; then sleep 1000 & wait; fi; exit 1$RANK`
	job := p.start(direct(p, 3, nil, []string{"sh", "-c", script})...)
	code := job.code()
	first, other := code-10, 3-(code-10)
	if code != 11 && code != 12 {
		t.Fatalf("rdzv ended with %d", code)
	}
	if len(job.linesWith("rank "+strconv.Itoa(first)+" of 3 failed first")) != 1 {
		t.Errorf("rank %d is not told of", first)
	}
	if lines := job.linesWith("also failed"); len(lines) > 1 || len(lines) == 1 && !strings.Contains(lines[0], "rank "+strconv.Itoa(other)+" ") {
		t.Errorf("the others are %q", lines)
	}
}

// The kernel kills a worker for want of memory: the report says so.
func TestOutOfMemory(t *testing.T) {
	p := newPlace(t)
	group := memoryGroup(t, 64<<20)
	line := direct(p, 2, nil, []string{python, "-c", `import os, time
if os.environ["RANK"] == "0": time.sleep(1000)
b = []
while True: b.append(bytearray(1 << 20))`})
	job := p.start(append([]string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group}, line...)...)
	if code := job.code(); code != 128+9 {
		t.Errorf("rdzv ended with %d, want 137", code)
	}
	if len(job.linesWith("out-of-memory killer")) != 1 {
		t.Error("the report does not tell of the memory")
	}
}
