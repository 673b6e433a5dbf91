package console

import (
	"testing"
)

// A table that a terminal refreshes in place begins at the first line and fits on it, also if lines
// wrap.
func TestCutToScreen(t *testing.T) {
	small := func(rows, columns int) Screen {
		return Screen{size: func() (int, int) { return rows, columns }}
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
		s := Screen{size: func() (int, int) { return 24, columns }}
		if got := s.Width(); got != want {
			t.Errorf("%d columns: %d, want %d", columns, got, want)
		}
	}
}
