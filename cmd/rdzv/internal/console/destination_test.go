package console

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// A terminal is coloured and rewritten only if TERM says that it can be.
func TestDestinationOfTerminal(t *testing.T) {
	master, slave := proctest.OpenTerminal(t)
	defer master.Close()
	defer slave.Close()
	for term, capable := range map[string]bool{
		"xterm": true, "linux": true, "": false, "dumb": false, "unknown": false,
	} {
		for noColor, want := range map[bool]Kind{false: Coloured, true: Uncoloured} {
			if !capable {
				want = Plain
			}
			if d := DestinationOf(slave, Setting{Term: term, NoColor: noColor}); d.kind != want {
				t.Errorf("TERM=%q, NO_COLOR %v: kind %v, want %v", term, noColor, d.kind, want)
			}
		}
	}
}

// The pseudoterminal that a launcher has made has no size, and is none of a person. Elsewhere, as
// with ssh -tt, there are terminals of people without a size.
func TestDestinationOfLauncher(t *testing.T) {
	master, slave := proctest.OpenTerminal(t)
	defer master.Close()
	defer slave.Close()
	for _, test := range []struct {
		size unix.Winsize
		rank string
		want Kind
	}{
		{unix.Winsize{}, "", Coloured},
		{unix.Winsize{}, "0", Log},
		{unix.Winsize{Row: 24, Col: 80}, "0", Coloured},
	} {
		if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &test.size); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK"} {
			d := DestinationOf(slave, SettingOf(map[string]string{"TERM": "xterm", name: test.rank}))
			if d.kind != test.want {
				t.Errorf("%s=%q, size %v: kind %v, want %v", name, test.rank, test.size, d.kind, test.want)
			}
		}
	}
}

// A table that a terminal refreshes in place begins at the first line and fits on it, also if lines
// wrap.
func TestInPlace(t *testing.T) {
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
		c.want = "\x1b[H" + strings.ReplaceAll(c.want, "\n", "\x1b[K\n") + "\x1b[J"
		if got := Of(Coloured, c.rows, c.columns).InPlace(table, c.others); got != c.want {
			t.Errorf("%d rows, %d columns, %d other lines: %q, want %q",
				c.rows, c.columns, c.others, got, c.want)
		}
	}
	painted := Of(Coloured, 3, 10).Paint(Red, "ten wide..") + "\n"
	if got, want := Of(Coloured, 3, 10).InPlace(painted, 2), "\x1b[H\x1b[31mten wide..\x1b[m\x1b[K\n\x1b[J"; got != want {
		t.Errorf("colours count: %q, want %q", got, want)
	}
}

// Texts fold at the width of a terminal.
func TestWidth(t *testing.T) {
	for columns, want := range map[int]int{0: 100, 40: 60, 80: 80, 200: 100} {
		if got := Of(Plain, 24, columns).Width(); got != want {
			t.Errorf("%d columns: %d, want %d", columns, got, want)
		}
	}
}
