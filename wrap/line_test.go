package wrap

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestLine: whether what was written to stderr ends within a line is known if it is copied, until
// the line is ended, also after Run.
func TestLine(t *testing.T) {
	nothingLeft(t)
	for _, c := range []struct {
		name, script string
		output       *Output // nil captures
		apart        bool    // stdout leads elsewhere
		want         bool
	}{
		{"captured", "printf 'progress 10%%' >&2", nil, true, true},
		{"captured carriage return", "printf 'progress 10%%\\r' >&2", nil, true, true},
		{"captured line", "printf '10%%\\n20%%\\n' >&2", nil, true, false},
		{"nothing", "true", nil, true, false},
		{"tagged", "printf 'progress 10%%' >&2", &Output{Tag: "[1] "}, true, true},
		{"held", "printf 'progress 10%%' >&2", &Output{Tag: "[1] ", Hold: true}, true, false},
		{"stdout at the same place", "printf 'progress 10%%'", &Output{}, false, true},
		{"stdout elsewhere", "printf 'progress 10%%'", &Output{}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := sh(t, c.script)
			out, shown := output(t)
			w.Stdout, w.Stderr, w.Output, w.Capture, w.Line = out, out, c.output, true, new(Line)
			elsewhere := func() string { return "" }
			if c.apart {
				w.Stdout, elsewhere = output(t)
			}
			within := false
			mustRun(t, t.Context(), Tree{
				Workers: []Worker{w},
				Ended:   func(int, Result) { within = w.Line.End() },
			})
			if within != c.want {
				t.Errorf("at its end: within a line %t, want %t", within, c.want)
			}
			if w.Line.End() {
				t.Error("the line has not been ended")
			}
			shown()
			elsewhere()
		})
	}
}

// TestLineShows: which lines are the last ones is known of what Run copies and of what the caller has
// written.
func TestLineShows(t *testing.T) {
	nothingLeft(t)
	lines := []string{"Traceback", "  File \"a.py\", line 1", "", "E: 100%"}
	const print = "printf 'Traceback\\n  File \"a.py\", line 1\\n\\n50%%\\rE: 100%%\\n' >&2"
	const coloured = `Traceback\n  File \033[35m"a.py"\033[0m, line 1\n\n\033[1mE\033[0m: 100%%\n\033[?25h\n1\n2\n`
	for _, c := range []struct {
		name, before, after string // scripts of other workers
		wrote               string
		want                bool
	}{
		{name: "the last lines", before: "echo 1 >&2", want: true},
		{name: "without their colours", after: "printf '" + coloured + "' >&2", want: true},
		{name: "two lines follow", after: "printf '1\\n\\n2\\n' >&2", want: true},
		{name: "three lines follow", after: "printf '1\\n2\\n3\\n' >&2", want: false},
		{name: "the caller's lines count", after: "echo 1 >&2", wrote: "2\n3\n", want: false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, shown := output(t)
			line := new(Line)
			for _, script := range []string{c.before, print, c.after} {
				w := sh(t, script+"\n")
				w.Stdout, w.Stderr, w.Capture, w.Line = out, out, true, line
				mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
			}
			line.Wrote(c.wrote)
			if got := line.Shows(lines, 2); got != c.want {
				t.Errorf("shows the lines: %t, want %t", got, c.want)
			}
			if line.Shows(nil, 2) {
				t.Error("shows no lines, want false")
			}
			shown()
		})
	}
}

// TestLineShowsTagged: it is also known of the lines that Run shows with tags, with those of
// other workers after them.
func TestLineShowsTagged(t *testing.T) {
	nothingLeft(t)
	lines := []string{"Traceback", "E: 100%"}
	for _, c := range []struct {
		name, after string
		want        bool
	}{
		{"the last lines", "true", true},
		{"two lines follow", "printf '1\\n2\\n' >&2", true},
		{"three lines follow", "printf '1\\n2\\n3\\n' >&2", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, shown := output(t)
			line, done := new(Line), filepath.Join(t.TempDir(), "done")
			scripts := []string{
				"printf '1\\n2\\n3\\nTraceback\\nE: 100%%\\n' >&2",
				"until [ -e " + done + " ]; do sleep 0.01; done; " + c.after,
			}
			var workers []Worker
			for i, script := range scripts {
				w := sh(t, script)
				w.Stdout, w.Stderr, w.Capture, w.Line = out, out, true, line
				w.Output = &Output{Tag: fmt.Sprintf("[%d] ", i), Hold: true}
				workers = append(workers, w)
			}
			mustRun(t, t.Context(), Tree{Workers: workers, Ended: func(i int, _ Result) {
				if err := os.WriteFile(done, nil, 0o600); err != nil {
					t.Error(err)
				}
			}})
			if got := line.Shows(lines, 2); got != c.want {
				t.Errorf("shows the lines: %t, want %t", got, c.want)
			}
			shown()
		})
	}
}

// TestLineShowsOfLateEnd: lines that others show until a worker ends, which is later than its last
// line, follow that line.
func TestLineShowsOfLateEnd(t *testing.T) {
	nothingLeft(t)
	for _, kind := range []string{"pipe", "pseudoterminal"} {
		t.Run(kind, func(t *testing.T) {
			shown, _ := logFile(t)
			if kind == "pseudoterminal" {
				shown = newRawTerminal(t).slave
			}
			next := filepath.Join(t.TempDir(), "next")
			first := sh(t, "echo E >&2; until [ -e "+next+" ]; do sleep 0.01; done; sleep 0.5")
			others := sh(t, "until [ -e "+next+" ]; do sleep 0.01; done; seq 9 >&2")
			line, last := new(Line), new(LastOutput)
			for _, w := range []*Worker{&first, &others} {
				w.Stdout, w.Stderr, w.Capture, w.Line = shown, shown, true, line
			}
			first.LastOutput = last
			r := begin(t, Tree{Workers: []Worker{first, others}})
			eventually(t, "the line is shown", func() bool { return last.Line() == "E" })
			if err := os.WriteFile(next, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := r.wait(); err != nil {
				t.Fatal(err)
			}
			if line.Shows([]string{"E"}, 5) || !line.Shows([]string{"E"}, 9) {
				t.Error("it is not known that 9 lines follow")
			}
		})
	}
}
