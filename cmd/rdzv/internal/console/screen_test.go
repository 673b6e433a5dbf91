package console

import (
	"testing"

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
			s := ScreenOf(slave, term, noColor)
			if !s.terminal || s.rewrites != capable || s.colour != (capable && !noColor) {
				t.Errorf("TERM=%q, NO_COLOR %v: terminal %v, rewrites %v, colour %v", term, noColor,
					s.terminal, s.rewrites, s.colour)
			}
		}
	}
}
