package agent

import (
	"maps"
	"testing"

	"rdzv/envmap"
)

// An agent publishes no values of variables that it is told to export, also if another one runs
// rank 0 and the launcher has forwarded them.
func TestExportedVariablesAreNoFacts(t *testing.T) {
	for rank := range 2 {
		l := &Local{
			Config:    Config{Program: []string{"true"}, Export: []string{"NCCL_*,OMP_A=given"}},
			Placement: envmap.Placement{Rank: rank},
			env: envmap.Env{
				"NCCL_SECRET": "s", "TORCH_OPEN": "o", "OMP_A": "a",
			},
		}
		var err error
		if l.exports, err = l.readExports()(func(string) {}); err != nil {
			t.Fatal(err)
		}
		got := l.facts().Variables
		if want := map[string]string{"TORCH_OPEN": "o"}; !maps.Equal(got, want) {
			t.Errorf("rank %d publishes %q, want %q", rank, got, want)
		}
	}
}
