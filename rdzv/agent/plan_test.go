package agent

import (
	"testing"

	"rdzv/envmap"
)

// The launcher overrides Config.Nodes, which is reported if it differs. A job of one node uses no
// other node's store.
func TestIgnoredFlags(t *testing.T) {
	const oneNode = "the job has one node; --nodes N makes it a job of N nodes"
	for _, c := range []struct {
		config Config
		place  envmap.Placement
		want   string // flag and reason
	}{
		{Config{Nodes: 2}, envmap.Placement{Launcher: envmap.None, Nodes: envmap.Unknown}, ""},
		{Config{Nodes: 2}, envmap.Placement{Launcher: envmap.Slurm, Nodes: 2}, ""},
		{Config{}, envmap.Placement{Launcher: envmap.Slurm, Nodes: 2}, ""},
		{
			Config{Nodes: 2}, envmap.Placement{Launcher: envmap.Slurm, Nodes: 1},
			"--nodes 2: slurm started this job on 1 node (--launcher none uses the flag)",
		},
		{
			Config{Nodes: 2}, envmap.Placement{Launcher: envmap.Hydra, Nodes: envmap.Unknown},
			"--nodes 2: hydra started this job (--launcher none uses the flag)",
		},
		{Config{Store: "node1"}, envmap.Placement{Launcher: envmap.None},
			"--store node1: " + oneNode},
		{Config{Join: "h:1/KEY"}, envmap.Placement{Launcher: envmap.None}, "RDZV_JOIN: " + oneNode},
		{Config{Store: "node1", Nodes: 1}, envmap.Placement{Launcher: envmap.None}, ""},
		{Config{Store: "node1"}, envmap.Placement{Launcher: envmap.Slurm, Nodes: 1}, ""},
	} {
		l := &Local{Config: c.config, Placement: c.place}
		got := ""
		for _, f := range l.IgnoredFlags() {
			got += f.Flag + ": " + f.Reason
		}
		if got != c.want {
			t.Errorf("%+v under %s: %q, want %q", c.config, c.place.Launcher, got, c.want)
		}
	}
}
