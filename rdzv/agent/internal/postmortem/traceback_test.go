package postmortem

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const multiline = `RuntimeError: Error(s) in loading state_dict for Linear: Missing key(s) in state_dict: "bias".`

// failures has what lastLines must return for each file in testdata/stderr, which are the stderr
// of failed programs: rank 2 of 4 with torch 2.6 and Python 3.13, and with torch 1.13 and Python
// 3.11; four ranks under mpirun with tagged output.
var failures = map[string]struct {
	message string
	lines   int
	first   string // of the lines, unless it is tracebackStart
}{
	"torch-2.6/plain":       {"ValueError: batch 17 is empty", 7, ""},
	"torch-1.13/plain":      {"ValueError: batch 17 is empty", 6, ""},
	"torch-2.6/cause":       {"RuntimeError: cannot load the checkpoint", 15, ""},
	"torch-1.13/cause":      {"RuntimeError: cannot load the checkpoint", 13, ""},
	"torch-2.6/context":     {"ValueError: no learning rate is configured", 23, ""},
	"torch-1.13/context":    {"ValueError: no learning rate is configured", 22, ""},
	"torch-2.6/multiline":   {multiline, 12, ""},
	"torch-1.13/multiline":  {multiline, 9, ""},
	"torch-2.6/blankline":   {"RuntimeError: the loss is not finite: step 3: nan", 7, ""},
	"torch-1.13/blankline":  {"RuntimeError: the loss is not finite: step 3: nan", 7, ""},
	"torch-2.6/dataloader":  {"ValueError: image 0 is truncated", 9, "Original " + tracebackStart},
	"torch-1.13/dataloader": {"ValueError: image 0 is truncated", 13, "Original " + tracebackStart},
	"torch-2.6/pool":        {"ValueError: frame 5 is corrupt", 23, ""},
	"torch-1.13/pool":       {"ValueError: frame 5 is corrupt", 23, ""},
	"torch-2.6/spawn":       {"ValueError: child 0 has no data", 7, ""},
	"torch-1.13/spawn":      {"ValueError: child 0 has no data", 6, ""},
	"torch-2.6/thread":      {"ValueError: the prefetch thread found no files", 10, ""},
	"torch-1.13/thread":     {"ValueError: the prefetch thread found no files", 8, ""},
	"torch-2.6/syntax":      {"SyntaxError: expected ':' (broken.py, line 1)", 7, ""},
	"torch-1.13/syntax":     {"SyntaxError: expected ':' (broken.py, line 1)", 7, ""},
	"torch-2.6/interrupt":   {"KeyboardInterrupt", 5, ""},
	"torch-1.13/interrupt":  {"KeyboardInterrupt", 4, ""},
	"torch-1.13/exit":       {"", 1, "the data set is empty"},
	"torch-2.6/progress":    {"ValueError: the loss is nan", 4, progress + tracebackStart},
	"torch-1.13/progress":   {"ValueError: the loss is nan", 4, progress + tracebackStart},
	"torch-2.6/group": {
		"ExceptionGroup: cannot open the data set (2 sub-exceptions)", 24, groupStart,
	},
	"torch-1.13/group": {
		"ExceptionGroup: cannot open the data set (2 sub-exceptions)", 21, groupStart,
	},
	"torch-2.6/groupchain":  {"RuntimeError: no data", 36, ""},
	"torch-1.13/groupchain": {"RuntimeError: no data", 33, ""},
	"torch-2.6/peer": {
		"RuntimeError: [./gloo/transport/tcp/pair.cc:525] Read error [127.0.0.1]:3996: " +
			"Connection reset by peer", 10, "",
	},
	"torch-2.6/timeout": {
		"RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while " +
			"waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.", 14, "",
	},
	"torch-2.6/store": {
		"torch.distributed.DistStoreError: wait timeout after 1000ms, keys: /default_pg/0//never " +
			"set",
		5, "",
	},
	"torch-1.13/store": {"RuntimeError: Socket Timeout", 4, ""},
	"torch-2.6/shapes": {
		"RuntimeError: [2]: params[0] in this process with sizes [2, 2] appears not to match " +
			"sizes of the same param in process 0.", 10, "",
	},
	"torch-1.13/shapes": {
		"RuntimeError: [2]: params[0] in this process with sizes [2, 2] appears not to match " +
			"sizes of the same param in process 0.", 10, "",
	},
	"mpirun/4.1-tag-output": {"ValueError: rank 2 has no learning rate", 23, ""},
	"mpirun/5.0-output-tag": {"ValueError: rank 3 has no learning rate", 19, ""},
}

const progress = " 50%|#####     | 50/100"

func TestFailures(t *testing.T) {
	files, err := filepath.Glob("testdata/stderr/*/*.txt")
	if err != nil || len(files) != len(failures) {
		t.Errorf("%d files in testdata/stderr, %v; want %d", len(files), err, len(failures))
	}
	for name, want := range failures {
		t.Run(name, func(t *testing.T) {
			lines, message, _ := lastLines(readFailure(t, name), false)
			if message != want.message {
				t.Errorf("message %q, want %q", message, want.message)
			}
			first := want.first
			if first == "" {
				first = tracebackStart
			}
			if len(lines) != want.lines || lines[0] != first {
				t.Errorf("%d lines, want %d, the first %q:\n%s",
					len(lines), want.lines, first, strings.Join(lines, "\n"))
			}
			for _, line := range lines {
				if strings.Contains(line, "[rank") || strings.Contains(line, "<stderr>") {
					t.Errorf("line %q, want it without its prefix", line)
				}
			}
		})
	}
}

func readFailure(t testing.TB, name string) []byte {
	t.Helper()
	stderr, err := os.ReadFile(filepath.Join("testdata", "stderr", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return stderr
}

// A prefix that a wrapper adds to every line does not change the result.
func TestLinePrefix(t *testing.T) {
	for _, prefix := range []string{
		"[rank13]: ", "[1,2]<stderr>:", "[1,2]<stderr>: ", "2: ", "[default2]:", "worker-1  | ",
	} {
		for name, want := range failures {
			if want.message == "" || strings.HasPrefix(name,
				"mpirun/") { // has other prefixes already
				continue
			}
			stderr := string(readFailure(t, name))
			lines, _, _ := lastLines([]byte(stderr), false)
			text := prefix + strings.ReplaceAll(strings.TrimRight(stderr, "\n"), "\n", "\n"+prefix)
			got, message, _ := lastLines([]byte(text), false)
			if message != want.message {
				t.Errorf("%s with prefix %q: message %q, want %q", name, prefix, message,
					want.message)
			}
			if !slices.Equal(got[1:], lines[1:]) { // a progress bar may precede the first
				t.Errorf("%s with prefix %q: lines %q\nwant %q", name, prefix, got[1:], lines[1:])
			}
		}
	}
}

// Lines of another rank between those of a traceback are not mistaken for the exception.
func TestInterleavedTracebacks(t *testing.T) {
	lines, message, _ := lastLines([]byte(`2: Traceback (most recent call last):
13: Traceback (most recent call last):
2:   File "/home/you/demo/x.py", line 2, in <module>
13:   File "/home/you/demo/x.py", line 3, in <module>
2:     load(17)
2: ValueError: batch 17 is empty
13:     load(18)
13: ValueError: batch 18 is empty
`), false)
	if want := "ValueError: batch 18 is empty"; message != want {
		t.Errorf("message %q, want %q", message, want)
	}
	if want := `  File "/home/you/demo/x.py", line 3, in <module>`; !slices.Contains(lines, want) {
		t.Errorf("lines %q, want %q among them", lines, want)
	}
}

// FuzzLinePrefix tests any prefix with any message.
func FuzzLinePrefix(f *testing.F) {
	f.Add("[rank2]: ", "ValueError: batch 17 is empty")
	f.Add("  | ", "")
	f.Fuzz(func(t *testing.T, prefix, exception string) {
		for _, text := range []string{prefix, exception} {
			if !utf8.ValidString(text) || strings.ContainsFunc(text, isUnprintable) ||
				partOfTraceback(text) {
				return // not a line, or part of a traceback itself
			}
		}
		exception = "E" + exception
		_, message, _ := lastLines([]byte(prefix+tracebackStart+"\n"+
			prefix+frame+"x.py\", line 3, in <module>\n"+
			prefix+"    load(17)\n"+
			prefix+exception+"\n"), false)
		if want := strings.TrimSpace(exception); message != want {
			t.Errorf("with prefix %q: message %q, want %q", prefix, message, want)
		}
	})
}

func partOfTraceback(text string) bool {
	return slices.ContainsFunc([]string{"Traceback", "Group", "Fatal", frame}, func(part string) bool {
		return strings.Contains(text, part)
	})
}

// The exception of a traceback is known without the rest of it.
func TestException(t *testing.T) {
	const start = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
	for text, want := range map[string]string{
		"":                                       "",
		"text\n":                                 "",
		start:                                    "",
		start + "    f()\nKeyError: 'a'\nmore\n": "KeyError: 'a'",
		"[rank2]: " + strings.ReplaceAll(start, "\n", "\n[rank2]: ") + "ValueError: 2\n": "ValueError: 2",
	} {
		if got := Exception([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The list of extension modules below a stack of Python's faulthandler is left out, as a line of its
// own or with what a launcher puts before it.
func TestExtensionModules(t *testing.T) {
	for _, before := range []string{"", "[1,0]<stderr>:"} {
		text := strings.Join([]string{
			"Fatal Python error: Aborted", "", "Current thread 0x00007f7d8fe64b80 (most recent call first):",
			`  File "train.py", line 7 in step`, "", "Extension modules: numpy.core, torch._C (total: 2)", "",
		}, "\n"+before)
		lines, _, _ := lastLines([]byte(before+text), false)
		if n := len(lines); n == 0 || slices.ContainsFunc(lines, listsModules) ||
			!slices.Contains(lines, `  File "train.py", line 7 in step`) {
			t.Errorf("%q: the report has %q", before, lines)
		}
	}
}
