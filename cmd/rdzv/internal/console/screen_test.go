package console

import (
	"testing"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// A terminal is coloured and rewritten only if TERM says that it can be.
func TestScreenOfTerminal(t *testing.T) {
	master, slave := proctest.OpenTerminal(t)
	defer master.Close()
	defer slave.Close()
	for term, capable := range map[string]bool{
		"xterm": true, "linux": true, "": false, "dumb": false, "unknown": false,
	} {
		for _, noColor := range []bool{false, true} {
			s := ScreenOf(slave, Setting{Term: term, NoColor: noColor})
			if !s.terminal || s.rewrites != capable || s.colour != (capable && !noColor) {
				t.Errorf("TERM=%q, NO_COLOR %v: terminal %v, rewrites %v, colour %v", term, noColor,
					s.terminal, s.rewrites, s.colour)
			}
		}
	}
}

// The pseudoterminal that a launcher has made has no size, and is none of a person. Elsewhere, as
// with ssh -tt, there are terminals of people without a size.
func TestScreenOfLauncher(t *testing.T) {
	master, slave := proctest.OpenTerminal(t)
	defer master.Close()
	defer slave.Close()
	for _, test := range []struct {
		size     unix.Winsize
		rank     string
		terminal bool
	}{
		{unix.Winsize{}, "", true},
		{unix.Winsize{}, "0", false},
		{unix.Winsize{Row: 24, Col: 80}, "0", true},
	} {
		if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &test.size); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK"} {
			s := ScreenOf(slave, SettingOf(map[string]string{"TERM": "xterm", name: test.rank}))
			if s.terminal != test.terminal || s.rewrites != test.terminal || s.colour != test.terminal {
				t.Errorf("%s=%q, size %v: terminal %v, rewrites %v, colour %v", name, test.rank, test.size,
					s.terminal, s.rewrites, s.colour)
			}
		}
	}
}
