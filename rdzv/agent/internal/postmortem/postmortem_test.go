package postmortem

import (
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
			"proc/self/cgroup":                           "0::/user.slice/job\n",
			"sys/fs/cgroup/user.slice/job/memory.events": "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n",
		}, 2},
		"version 1": {map[string]string{
			"proc/self/cgroup": "8:pids:/\n4:memory:/job\n0::/\n",
			"sys/fs/cgroup/memory/job/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
		}, 5},
		"container, version 1": {map[string]string{
			"proc/self/cgroup":                        "4:memory:/docker/4f2a\n0::/\n",
			"sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
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
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestLastLines(t *testing.T) {
	const chain = "Traceback (most recent call last):\nOSError: one\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\nValueError: two\n"
	const unrecorded = `[rank2]: Traceback (most recent call last):
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
		summary string
	}{
		"nothing":    {"", "", 0, ""},
		"no end":     {"a\nb", "a", 2, ""},
		"traceback":  {"noise\nTraceback (most recent call last):\n  File\nValueError: x\nlater\n", "Traceback (most recent call last):", 4, "ValueError: x"},
		"chain":      {"noise\n" + chain, "Traceback (most recent call last):", 7, "ValueError: two"},
		"two":        {"Traceback (most recent call last):\nA: 1\nTraceback (most recent call last):\nB: 2\n", "Traceback (most recent call last):", 2, "B: 2"},
		"fatal":      {"Fatal Python error: Aborted\n\nCurrent thread\n", "Fatal Python error: Aborted", 3, "Fatal Python error: Aborted"},
		"long":       {strings.Repeat("x\n", 100) + "end\n", "x", tailLines, ""},
		"long trace": {"Traceback (most recent call last):\n" + strings.Repeat("  x\n", 200) + "E: end\n", "Traceback (most recent call last):", tracebackLines, "E: end"},
		"progress":   {"10%\r20%\r100%\n", "100%", 1, ""},
		"unrecorded": {unrecorded, "Traceback (most recent call last):", 3, "ValueError: batch 17 is empty"},
		"bytes":      {"\xff\x1b[31m\x07é\n", "\uFFFD[31mé", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			lines, message := lastLines([]byte(c.stderr))
			if len(lines) != c.lines || len(lines) > 0 && lines[0] != c.first {
				t.Errorf("got %d lines: %q, want %d, the first %q", len(lines), lines, c.lines, c.first)
			}
			if message != c.summary {
				t.Errorf("the message is %q, want %q", message, c.summary)
			}
		})
	}
}

func FuzzLastLines(f *testing.F) {
	f.Add([]byte("Traceback (most recent call last):\n  File\nE: x\n"))
	f.Add([]byte("\r\r\n\xff\x00"))
	for name := range failures {
		f.Add(readFailure(f, name))
	}
	f.Fuzz(func(t *testing.T, stderr []byte) {
		lines, message := lastLines(stderr)
		if len(lines) > tracebackLines {
			t.Errorf("%d lines", len(lines))
		}
		for _, line := range append(lines, message) {
			if i := strings.IndexFunc(line, invisible); i >= 0 {
				t.Errorf("%q has a control character at %d", line, i)
			}
		}
		text := strings.ToValidUTF8(string(stderr), "\uFFFD")
		if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			return strings.Contains(withoutControl(line), message)
		}) {
			t.Errorf("the message %q is in no line of %q", message, text)
		}
	})
}

func invisible(r rune) bool { return unicode.IsControl(r) && r != '\t' }

func withoutControl(line string) string {
	return strings.Map(func(r rune) rune {
		if invisible(r) {
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
		`{"message": {"message": "KeyError: 'x'", "extraInfo": {"py_callstack": "Traceback\n KeyError\n", "timestamp": "1"}}}`: {"KeyError: 'x'", "Traceback\n KeyError"},
		`{"message": {"message": "no stack"}}`: {"no stack", ""},
		`{"message": {"mess`:                   {"", ""},
	} {
		if line, traceback := parseErrorFile([]byte(text)); line != want[0] || traceback != want[1] {
			t.Errorf("%s gives %q, %q; want %q", text, line, traceback, want)
		}
	}
}

func FuzzErrorFile(f *testing.F) {
	f.Add([]byte(`{"message": {"message": "m", "extraInfo": {"py_callstack": "s"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if line, _ := parseErrorFile(text); strings.Contains(line, "\n") {
			t.Errorf("%q is no line", line)
		}
	})
}

func TestConsequence(t *testing.T) {
	for line, want := range map[string]bool{
		"RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:12191":        true,
		"RuntimeError: [./gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:1: Connection reset by peer": true,
		"RuntimeError: Broken pipe": true,
		"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.": true,
		"ValueError: batch 17 is empty":                           false,
		"RuntimeError: mat1 and mat2 shapes cannot be multiplied": false,
		"": false,
	} {
		if got := isConsequence([]string{"Traceback", line}); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
