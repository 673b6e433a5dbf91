package postmortem

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

func TestOOMKills(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int
	}{
		"version 2": {map[string]string{
			"proc/self/cgroup": "0::/user.slice/job\n",
			"sys/fs/cgroup/user.slice/job/memory.events": "low 0\nhigh 0\nmax 12\noom 3\n" +
				"oom_kill 2\noom_group_kill 0\n",
		}, 2},
		"version 1": {map[string]string{
			"proc/self/cgroup": "8:pids:/\n4:memory:/job\n0::/\n",
			"sys/fs/cgroup/memory/job/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n" +
				"oom_kill 5\n",
		}, 5},
		"container, version 1": {map[string]string{
			"proc/self/cgroup": "4:memory:/docker/4f2a\n0::/\n",
			"sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n" +
				"oom_kill 1\n",
		}, 1},
		"container, version 2": {map[string]string{
			"proc/self/cgroup":            "0::/system.slice/docker-4f2a.scope\n",
			"sys/fs/cgroup/memory.events": "oom 1\noom_kill 1\n",
		}, 1},
		"old kernel": {map[string]string{
			"proc/self/cgroup":            "0::/\n",
			"sys/fs/cgroup/memory.events": "low 0\nhigh 0\nmax 0\noom 0\n",
		}, -1},
		"no number": {map[string]string{
			"proc/self/cgroup":            "0::/\n",
			"sys/fs/cgroup/memory.events": "oom_kill many\n",
		}, -1},
		"nothing": {nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for path, text := range c.files {
				root[path] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := OOMKills(root); got != c.want {
				t.Errorf("%d kills, want %d", got, c.want)
			}
		})
	}
}

func TestLastLines(t *testing.T) {
	const start = tracebackStart + "\n"
	const during = "\nDuring handling of the above exception, another exception occurred:\n\n"
	const chain = start + "OSError: one\n" + during + start + "ValueError: two\n"
	const recordFailed = `[rank2]: Traceback (most recent call last):
[rank2]:   File "x.py", line 3, in <module>
[rank2]: ValueError: batch 17 is empty

[rank2]: During handling of the above exception, another exception occurred:

[rank2]: Traceback (most recent call last):
[rank2]:   File "error_handler.py", line 79, in record_exception
[rank2]: FileNotFoundError: [Errno 2] No such file or directory: 'error.json'
`
	for name, c := range map[string]struct {
		stderr  string
		first   string
		lines   int
		message string
	}{
		"empty":      {"", "", 0, ""},
		"no newline": {"a\nb", "a", 2, ""},
		"colours": {"\x1b[1;35mTraceback (most recent call last):\x1b[0m\n  File\n" +
			"\x1b[1;35mValueError\x1b[0m: \x1b[35mx\x1b[0m\n", tracebackStart, 3, "ValueError: x"},
		"traceback": {"x\n" + start + "  File\nValueError: x\ny\n", tracebackStart, 4,
			"ValueError: x"},
		"chain": {"x\n" + chain, tracebackStart, 7, "ValueError: two"},
		"two":   {start + "A: 1\n" + start + "B: 2\n", tracebackStart, 2, "B: 2"},
		"fatal": {fatalStart + "Aborted\n\nCurrent thread\n", fatalStart + "Aborted", 3,
			fatalStart + "Aborted"},
		"abort": {"step 17\nfree(): invalid pointer\n" + fatalStart + "Aborted\n\nCurrent thread\n",
			"free(): invalid pointer", 4, "free(): invalid pointer"},
		"abort, unexplained": {"step 17\n" + fatalStart + "Aborted\n", fatalStart + "Aborted", 1,
			fatalStart + "Aborted"},
		"abort in a thread": {"step 17\nterminate called without an active exception\n" + fatalStart +
			"Aborted\n", "terminate called without an active exception", 2,
			"terminate called without an active exception"},
		"C++ exception": {"terminate called after throwing an instance of 'c10::Error'\n" +
			"  what():  no memory\n" + fatalStart + "Aborted\n", "terminate called after throwing an instance of 'c10::Error'", 3,
			"no memory"},
		"abort after an exception": {start + "  File\nE: 1\nterminate called without an active " +
			"exception\n" + fatalStart + "Aborted\n", tracebackStart, 4, "E: 1"},
		"another signal": {"step 17\n" + fatalStart + "Segmentation fault\n",
			fatalStart + "Segmentation fault", 1, fatalStart + "Segmentation fault"},
		"long": {strings.Repeat("x\n", 100) + "end\n", "x", tailLines, ""},
		"long trace": {start + strings.Repeat("  x\n", 200) + "E: end\n", tracebackStart,
			tracebackLines, "E: end"},
		"progress bar":  {"10%\r20%\r100%\n", "100%", 1, ""},
		"record failed": {recordFailed, tracebackStart, 3, "ValueError: batch 17 is empty"},
		"control bytes": {"\xff\x1b[31m\x07é\n", "\uFFFDé", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			lines, message, _ := lastLines([]byte(c.stderr), false)
			if len(lines) != c.lines || len(lines) > 0 && lines[0] != c.first {
				t.Errorf("%d lines %q; want %d, the first %q", len(lines), lines, c.lines, c.first)
			}
			if message != c.message {
				t.Errorf("message %q, want %q", message, c.message)
			}
		})
	}
}

// Without a traceback the last line names the failure, unless a signal killed the worker.
func TestMessage(t *testing.T) {
	for stderr, want := range map[string]string{
		"":                   "",
		"x\nno data\n\n  \n": "no data",
		"\x1b[?25l 1%\r\x1b[2K\x1b]8;;file:///x\x1b\\no data\x1b]8;;\x07\x1b[0J\x1b[?25h\n": "no data",
		"/usr/bin/python3: No module named " +
			"nosuch\n": "/usr/bin/python3: No module named nosuch",
		"  File \"x.py\", line 1\n    x =\n       ^\nSyntaxError: invalid " +
			"syntax\n": "SyntaxError: invalid syntax (x.py, line 1)",
		"  File \"/home/you/x.py\", line 1\nSyntaxError: Non-UTF-8 code starting with '\\xe9' in file " +
			"/home/you/x.py on line 1\n": "SyntaxError: Non-UTF-8 code starting with '\\xe9' in file " +
			"/home/you/x.py on line 1",
		"SyntaxError: bad\n":               "SyntaxError: bad",
		tracebackStart + "\nE: x\nlater\n": "E: x",

		// What follows the reason does not replace it.
		"rdzv: cannot run exec: already rank 0 of job x\nrdzv: hint: a worker cannot\n": "rdzv: cannot " +
			"run exec: already rank 0 of job x",
		"rdzv: cannot run exec: already rank 1 of job x\nrdzv: hint: a worker cannot start another job; " +
			"--launcher none starts one\nrdzv:   nevertheless\n": "rdzv: cannot run exec: already rank 1 " +
			"of job x",
		"rdzv: cannot find\nrdzv:   the file\nrdzv: hint: look\nrdzv:   for it\n": "rdzv: cannot find " +
			"the file",
		"rdzv: rank 0 failed first: exit 3 after 0.04s on node1 (local rank 0, pid\n" +
			"rdzv:   26334): no data\n": "no data",
		"rdzv: rank 1 of 2 failed first\nrdzv:   program  a\nrdzv:   its output is above\n" +
			"rdzv:   how      exit 3 after 1s\n": "rank 1 of 2 failed first",
		"env: 'python3\\r': No such file\nenv: use -[v]S to pass options in shebang lines\n": "env: " +
			"'python3\\r': No such file",
		"ls: unrecognized option '--x'\nTry 'ls --help' for more information.\n": "ls: " +
			"unrecognized option '--x'",
		"error: unexpected argument\n\nUsage: tool [x]\n\nFor more information, try '--help'.\n": "error: " +
			"unexpected argument",
		"usage: x.py [-h] --lr LR\nx.py: error: --lr is required\n": "x.py: error: --lr is required",
		"no data\n------\n": "no data",
		"step 17\n-----\nmpirun was unable to\nstart x.\n\nNode: n1\n-----\n": "mpirun was unable to " +
			"start x.",
		"-----\nThe job has been aborted.\n-----\n-----\nThe first was:\n\n  0\n-----\n": "The first was:",
		"-----\n" + strings.Repeat("why\n", 30) + "\nText\n-----\n": strings.TrimSpace(
			strings.Repeat("why ", 30)),
		"Usage: tool [x]\n": "Usage: tool [x]",
		"=====\n":           "=====",
	} {
		if got := Examine([]byte(stderr), "", false).Message; got != want {
			t.Errorf("%q: message %q, want %q", stderr, got, want)
		}
	}
	for stderr, want := range map[string]bool{"step 17\n": true, tracebackStart + "\nE: x\n": false} {
		if got := Examine([]byte(stderr), "", false).LastLine; got != want {
			t.Errorf("%q: only the last line: %v, want %v", stderr, got, want)
		}
	}
	if got := Examine([]byte("step 17\n"), "", true).Message; got != "" {
		t.Errorf("killed by a signal: message %q, want none", got)
	}
}

func FuzzLastLines(f *testing.F) {
	f.Add([]byte("Traceback (most recent call last):\n  File\nE: x\n"))
	f.Add([]byte("\r\r\n\xff\x00"))
	for name := range failures {
		f.Add(readFailure(f, name))
	}
	f.Fuzz(func(t *testing.T, stderr []byte) {
		lines, message, _ := lastLines(stderr, false)
		if len(lines) > tracebackLines {
			t.Errorf("%d lines, want at most %d", len(lines), tracebackLines)
		}
		for _, line := range append(lines, message) {
			if i := strings.IndexFunc(line, isUnprintable); i >= 0 {
				t.Errorf("line %q has a control character at %d", line, i)
			}
		}
		text := strings.ToValidUTF8(string(stderr), "\uFFFD")
		parts := strings.Split(text, "\n")
		parts = append(parts, unfolded(parts)...)
		isPart := func(message string) bool {
			return slices.ContainsFunc(parts, func(line string) bool {
				return strings.Contains(withoutControl(line), message)
			})
		}
		if isSyntaxError().MatchString(message) {
			message = regexp.MustCompile(` \([^(]*, line \d+\)$`).ReplaceAllString(message, "")
		}
		if !slices.ContainsFunc(append(indexes(message, ": "), len(message)), func(end int) bool {
			return isPart(message[:end]) && isPart(strings.TrimSpace(message[min(end+1, len(message)):]))
		}) {
			t.Errorf("message %q, want a part of a line, or of two, of %q", message, text)
		}
	})
}

// indexes are where a part of a text ends.
func indexes(text, part string) (list []int) {
	for i := range text {
		if strings.HasSuffix(text[:i], part) {
			list = append(list, i-1)
		}
	}
	return list
}

func isUnprintable(r rune) bool { return unicode.IsControl(r) && r != '\t' }

func withoutControl(line string) string {
	return strings.Map(func(r rune) rune {
		if isUnprintable(r) {
			return -1
		}
		return r
	}, line)
}

func TestErrorFile(t *testing.T) {
	for text, want := range map[string][2]string{
		``:                         {"", ""},
		`{}`:                       {"", ""},
		`null`:                     {"", ""},
		`{"message": 3}`:           {"", ""},
		`{"message": "no\nthing"}`: {"no", ""},
		`{"message": {"message": "KeyError: 'x'", ` +
			`"extraInfo": {"py_callstack": "Traceback\n KeyError\n", "timestamp": "1"}}}`: {
			"KeyError: 'x'", "Traceback\n KeyError",
		},
		`{"message": {"message": "no stack"}}`: {"no stack", ""},
		`{"message": {"mess`:                   {"", ""},
	} {
		if line, traceback := parseErrorFile([]byte(text)); line != want[0] ||
			traceback != want[1] {
			t.Errorf("parseErrorFile(%s) = %q, %q; want %q", text, line, traceback, want)
		}
	}
}

func FuzzErrorFile(f *testing.F) {
	f.Add([]byte(`{"message": {"message": "m", "extraInfo": {"py_callstack": "s"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if line, _ := parseErrorFile(text); strings.Contains(line, "\n") {
			t.Errorf("parseErrorFile(%s) = %q, want one line", text, line)
		}
	})
}

func TestConsequence(t *testing.T) {
	for line, want := range map[string]bool{
		"RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer " +
			"[127.0.0.1]:12191": true,
		"RuntimeError: [./gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:1: Connection " +
			"reset by peer": true,
		"RuntimeError: Broken pipe": true,
		"ncclRemoteError: A call failed possibly due to a network error or a remote process " +
			"exiting prematurely.": true,
		"ValueError: batch 17 is empty":                           false,
		"RuntimeError: mat1 and mat2 shapes cannot be multiplied": false,
		"": false,
	} {
		for _, f := range []Findings{{Lines: []string{"Traceback", line}}, {Message: line}} {
			if got := f.Consequence(); got != want {
				t.Errorf("%+v: Consequence is %t, want %t", f, got, want)
			}
		}
	}
}
