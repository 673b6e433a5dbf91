package layout

import (
	"testing"

	"rdzv/envmap"
)

// Which agents tell the user what all agents of a node know before they meet.
func TestFirstOfNode(t *testing.T) {
	for _, test := range []struct {
		launcher envmap.Launcher
		local    int
		want     bool
	}{
		{"slurm", 0, true}, {"slurm", 1, false}, {"pals", envmap.Unknown, true},
		{envmap.None, envmap.Unknown, true}, {envmap.None, 1, true},
	} {
		l := Layout{Placement: envmap.Placement{Launcher: test.launcher, LocalRank: test.local}}
		if got := l.FirstOfNode(); got != test.want {
			t.Errorf("%s, local rank %d: %t, want %t", test.launcher, test.local, got, test.want)
		}
	}
}
