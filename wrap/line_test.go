package wrap

import (
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
