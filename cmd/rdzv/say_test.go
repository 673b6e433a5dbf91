package main

import (
	"errors"
	"strings"
	"testing"
)

// heard is a say that writes to a string.
func heard(s screen) (*say, *strings.Builder) {
	var out strings.Builder
	return newSay(&out, s), &out
}

func terminal(width int) screen {
	return screen{renews: true, colour: true, width: func() int { return width }}
}

func TestSayPlainly(t *testing.T) {
	s, out := heard(screen{})
	s.line("a %d", 1)
	s.line("two\nlines\n")
	s.fail(1, advice{errors.New("cannot b"), "c"})
	s.detail("unheard without -v")
	want := "rdzv: a 1\nrdzv: two\nrdzv: lines\nrdzv: cannot b\nrdzv: hint: c\n"
	if out.String() != want {
		t.Errorf("said %q, want %q", out, want)
	}
}

func TestSayQuietlyAndMore(t *testing.T) {
	s, out := heard(screen{})
	s.quiet = true
	s.news("n")
	s.waiting("w")
	s.waited()
	s.line("l")
	if out.String() != "rdzv: l\n" {
		t.Errorf("-q said %q", out)
	}
	s, out = heard(screen{})
	s.verbose = true
	s.detail("d")
	if out.String() != "rdzv: d\n" {
		t.Errorf("-v said %q", out)
	}
}

// Elsewhere than on a terminal each wait is a line, said once.
func TestWaitingPlainly(t *testing.T) {
	s, out := heard(screen{})
	s.waiting("%d of 3", 1)
	s.waiting("%d of 3", 1)
	s.waiting("%d of 3", 2)
	s.waited()
	s.waiting("%d of 3", 2)
	if want := "rdzv: 1 of 3\nrdzv: 2 of 3\nrdzv: 2 of 3\n"; out.String() != want {
		t.Errorf("said %q, want %q", out, want)
	}
}

// On a terminal one line renews itself, and is gone when anything else is said.
func TestWaitingOnATerminal(t *testing.T) {
	s, out := heard(terminal(80))
	s.waiting("1 of 3")
	s.waiting("2 of 3")
	s.line("other")
	s.waiting("2 of 3")
	s.waited()
	s.waited()
	s.line("end")
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
	rows := []row{
		{"rank", "2", "RANK=2"},
		{"job", "0123456789012345", strings.Repeat("word ", 20) + "end"},
		{"note", "", "said"},
		{"alone", "value", ""},
		{"mean", "a\x1b[31m\n\"b\"", "x"},
	}
	want := `rank        2          RANK=2
job         0123456789012345
              word word word word word
              word word word word word
              word word word word word
              word word word word word
              end
note        said
alone       value
mean        a\x1b[31m\n"b"  x
`
	if got := table(rows, 40); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := table(rows, 0); strings.Count(got, "\n") != 6 {
		t.Errorf("without a width lines were broken:\n%s", got)
	}
}
