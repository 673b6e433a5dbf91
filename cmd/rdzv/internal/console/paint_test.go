package console

import (
	"strings"
	"testing"

	"rdzv/rdzv/stacks"
)

func TestPaint(t *testing.T) {
	const off = "\x1b[m"
	coloured := Screen{screen{terminal: true, rewrites: true, colour: true}}
	for _, c := range []struct {
		marks       []Mark
		table, want string
	}{
		{CheckMarks, "! /dev/shm  1!\n* open files  1 *\n  kernel  6\nerror: no (ok: x)\nnot ok: why\nok: exec\n",
			"\x1b[31m!" + off + " /dev/shm  1!\n\x1b[35m*" + off + " open files  1 *\n  kernel  6\n" +
				"\x1b[31merror:" + off + " no (ok: x)\n\x1b[31mnot ok:" + off + " why\n" +
				"\x1b[32mok" + off + ": exec\n"},
		{StatusMarks, "0  stopped-node  7  running  1s\n1  n  8  stopped  1s\n2  n  9  exit 0  1s\n" +
			"3  n  9  exit 13  1s\nrank 1 (n) has not reached init_process_group\n",
			"0  stopped-node  7  running  1s\n1  n  8  \x1b[31mstopped" + off + "  1s\n2  n  9  exit 0  1s\n" +
				"3  n  9  \x1b[31mexit 13" + off + "  1s\n" +
				"\x1b[35mrank 1 (n) has not reached init_process_group" + off + "\n"},
		{StacksMarks, "job a: 3 of 4 ranks are at the same place, but not rank 2 (n)\nranks 0-1,3: x\n",
			"job a: 3 of 4 ranks are at the same place, but not \x1b[35mrank 2 (n)" + off +
				"\nranks 0-1,3: x\n"},
	} {
		if got := coloured.Paint(c.table, c.marks); got != c.want {
			t.Errorf("painted\n%s\nwant\n%s", strings.ReplaceAll(got, "\x1b", "ESC"),
				strings.ReplaceAll(c.want, "\x1b", "ESC"))
		}
		if got := (Screen{}).Paint(c.table, c.marks); got != c.table {
			t.Errorf("without a terminal: %q", got)
		}
	}
}

// A table that a terminal refreshes in place begins at the first line and fits on it, also if lines
// wrap.
func TestCutToScreen(t *testing.T) {
	small := func(rows, columns int) Screen {
		return Screen{screen{size: func() (int, int) { return rows, columns }}}
	}
	const table = "one\ntwo\nthree, which wraps\nfour\n"
	for _, c := range []struct {
		rows, columns, others int
		want                  string
	}{
		{24, 80, 1, table},
		{5, 80, 1, table},
		{4, 80, 1, "one\ntwo\n... and 2 more lines, for which this terminal is too small\n"},
		{5, 10, 1, "one\ntwo\n... and 2 more lines, for which this terminal is too small\n"},
		{5, 80, 2, "one\ntwo\n... and 2 more lines, for which this terminal is too small\n"},
		{0, 0, 1, table},
	} {
		if got := small(c.rows, c.columns).Cut(table, c.others); got != c.want {
			t.Errorf("%d rows, %d columns, %d other lines: %q, want %q",
				c.rows, c.columns, c.others, got, c.want)
		}
	}
	if got, want := InPlace("a\nb\n"), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J"; got != want {
		t.Errorf("in place: %q, want %q", got, want)
	}
}

// Texts fold at the width of a terminal.
func TestWidth(t *testing.T) {
	for columns, want := range map[int]int{0: 100, 40: 60, 80: 80, 200: 100} {
		s := Screen{screen{size: func() (int, int) { return 24, columns }}}
		if got := s.Width(); got != want {
			t.Errorf("%d columns: %d, want %d", columns, got, want)
		}
	}
	report := []stacks.Report{stacks.Of("train", nil)}
	report[0].Problems = []stacks.Problem{
		{Text: stacks.NotInstalled, Hosts: []string{"a-long-name-of-node1"}},
	}
	for line := range strings.Lines(StacksTable(report, 80)) {
		if len(line) > 81 {
			t.Errorf("%d columns: %q", len(line), line)
		}
	}
}
