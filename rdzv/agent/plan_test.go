package agent

import (
	"testing"

	"rdzv/envmap"
)

// The launcher overrides Config.Nodes, which is reported if it differs.
func TestIgnoredFlags(t *testing.T) {
	for _, c := range []struct {
		nodes int
		place envmap.Placement
		want  string // reason
	}{
		{2, envmap.Placement{Launcher: envmap.None, Nodes: envmap.Unknown}, ""},
		{2, envmap.Placement{Launcher: envmap.Slurm, Nodes: 2}, ""},
		{0, envmap.Placement{Launcher: envmap.Slurm, Nodes: 2}, ""},
		{
			2, envmap.Placement{Launcher: envmap.Slurm, Nodes: 1},
			"slurm started this job on 1 node (--launcher none uses the flag)",
		},
		{
			2, envmap.Placement{Launcher: envmap.Hydra, Nodes: envmap.Unknown},
			"hydra started this job (--launcher none uses the flag)",
		},
	} {
		l := &Local{Config: Config{Nodes: c.nodes}, Placement: c.place}
		got := ""
		for _, f := range l.IgnoredFlags() {
			got += f.Reason
		}
		if got != c.want {
			t.Errorf("Nodes %d under %s: reason %q, want %q", c.nodes, c.place.Launcher, got, c.want)
		}
	}
}
