package tables

import (
	"strings"
	"testing"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv/stacks"
)

func TestMarks(t *testing.T) {
	const off = "\x1b[m"
	coloured := console.Coloured()
	for _, c := range []struct {
		marks       []console.Mark
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
		{StacksMarks, "job a: rank 2 (n) is not where the others are: t.py:4\nranks 0-1,3: x\n",
			"job a: \x1b[35mrank 2 (n) is not where the others are: t.py:4" + off +
				"\nranks 0-1,3: x\n"},
	} {
		if got := coloured.Paint(c.table, c.marks); got != c.want {
			t.Errorf("painted\n%s\nwant\n%s", strings.ReplaceAll(got, "\x1b", "ESC"),
				strings.ReplaceAll(c.want, "\x1b", "ESC"))
		}
		if got := (console.Screen{}).Paint(c.table, c.marks); got != c.table {
			t.Errorf("without a terminal: %q", got)
		}
	}
}

// Texts fold at the width of a terminal.
func TestWidth(t *testing.T) {
	report := []stacks.Report{stacks.Of("train", nil)}
	report[0].Problems = []stacks.Problem{
		{Text: stacks.NotInstalled, Hosts: []string{"a-long-name-of-node1"}},
	}
	for line := range strings.Lines(Stacks(report, 80)) {
		if len(line) > 81 {
			t.Errorf("%d columns: %q", len(line), line)
		}
	}
}
