package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// noSignals is a set of no signals as /proc shows it.
const noSignals = "0000000000000000"

// A worker starts with no signal blocked or caught, and with none ignored except those that the
// launcher ignores for it.
func TestInitialSignalState(t *testing.T) {
	forEachLauncher(t, func(t *testing.T, l launcher) {
		p := l.place(t)
		job := p.start(l.command(p, 2, nil, []string{"cat", "/proc/self/status"})...)
		job.checkCode(0)
		for name, want := range map[string]string{
			"SigBlk": noSignals, "SigIgn": l.ignores, "SigCgt": noSignals,
		} {
			lines := job.linesWith(name + ":")
			if len(lines) != 2 {
				t.Errorf("%d workers printed %s, want 2", len(lines), name)
			}
			for _, line := range lines {
				if got := standardSignals(strings.TrimPrefix(line, name+":\t")); got != want {
					t.Errorf("%s of a worker is %s, want %s", name, got, want)
				}
			}
		}
	})
}

// standardSignals removes from a set the signals from 32 on. Thread libraries use them, and whether
// they are ignored depends on the process that started this test.
func standardSignals(set string) string {
	bits, err := strconv.ParseUint(set, 16, 64)
	if err != nil {
		return set
	}
	return fmt.Sprintf("%016x", bits&(1<<31-1))
}
