package console

import (
	"errors"
	"strings"
	"testing"
)

// heard is a console that writes to a string.
func heard(s screen) (*Console, *strings.Builder) {
	var out strings.Builder
	return &Console{out: &out, screen: s}, &out
}

func terminal(width int) screen {
	return screen{rewrites: true, colour: true, width: func() int { return width }}
}

// advice is an error with a hint.
type advice struct {
	error
	hint string
}

func (a advice) Hint() string { return a.hint }

func TestLines(t *testing.T) {
	s, out := heard(screen{})
	s.Warn("a %d", 1)
	s.Warn("two\nlines\n")
	s.Fail(advice{errors.New("cannot b"), "c"})
	s.Verbose("unheard without -v")
	want := "rdzv: a 1\nrdzv: two\nrdzv: lines\nrdzv: cannot b\nrdzv: hint: c\n"
	if out.String() != want {
		t.Errorf("said %q, want %q", out, want)
	}
}

func TestLevels(t *testing.T) {
	s, out := heard(screen{})
	s.quiet = true
	s.Info("n")
	s.Status("w")
	s.EndStatus()
	s.Warn("l")
	if out.String() != "rdzv: l\n" {
		t.Errorf("-q said %q", out)
	}
	s, out = heard(screen{})
	s.verbose = true
	s.Verbose("d")
	if out.String() != "rdzv: d\n" {
		t.Errorf("-v said %q", out)
	}
}

// Elsewhere than on a terminal each wait is a line, said once.
func TestStatusWithoutTerminal(t *testing.T) {
	s, out := heard(screen{})
	s.Status("%d of 3", 1)
	s.Status("%d of 3", 1)
	s.Status("%d of 3", 2)
	s.EndStatus()
	s.Status("%d of 3", 2)
	if want := "rdzv: 1 of 3\nrdzv: 2 of 3\nrdzv: 2 of 3\n"; out.String() != want {
		t.Errorf("said %q, want %q", out, want)
	}
}

// On a terminal one line renews itself, and is gone when anything else is said.
func TestStatusOnATerminal(t *testing.T) {
	s, out := heard(terminal(80))
	s.Status("1 of 3")
	s.Status("2 of 3")
	s.Warn("other")
	s.Status("2 of 3")
	s.EndStatus()
	s.EndStatus()
	s.Warn("end")
	want := erase + "rdzv: 1 of 3" + erase + "rdzv: 2 of 3" + erase + "rdzv: other\n" + erase + "rdzv: 2 of 3" + erase + "rdzv: end\n"
	if out.String() != want {
		t.Errorf("said %q, want %q", out, want)
	}
}

// A line that renews itself never fills the last column, whatever the width.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		width int
		line  string
		want  string
	}{
		{20, "rdzv: 1 of 3", "rdzv: 1 of 3"},
		{13, "rdzv: 1 of 3", "rdzv: 1 of 3"},
		{12, "rdzv: 1 of 3", "rdzv: 1 of…"},
		{10, "rdzv: äöüäöü", "rdzv: äö…"},
		{1, "rdzv: 1 of 3", "…"},
		{0, strings.Repeat("x", 100), strings.Repeat("x", 78) + "…"},
	} {
		if got := terminal(c.width).fit(c.line); got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.line, c.width, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	rows := []Row{
		{"rank", "2", "RANK=2"},
		{"local rank", "unknown", "no launcher"},
		{"job", strings.Repeat("0123456789", 3), "PMI_ID"},
		{"note", "", "a reason"},
		{"alone", "value", ""},
		{"control", "a\x1b[31m\n\"b\"", "x"},
	}
	want := `rank        2        RANK=2
local rank  unknown  no launcher
job         012345678901234567890123456789
              PMI_ID
note        a reason
alone       value
control     a\x1b[31m\n"b"  x
`
	if got := Table(rows); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
