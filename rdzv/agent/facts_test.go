package agent

import (
	"fmt"
	"maps"
	"testing"

	"rdzv/envmap"
	"rdzv/rdzv"
)

// Differences are reported as events, unless they are problems; what is equal is not.
func TestCompared(t *testing.T) {
	equal := rdzv.Comparison{Fact: "torch", Groups: make([]rdzv.Group, 1)}
	different := rdzv.Comparison{Fact: "python", Groups: make([]rdzv.Group, 2)}
	for strict, want := range map[bool]string{false: "[python]", true: "[]"} {
		var facts []string
		record := func(e Event) { facts = append(facts, e.(NodesDiffer).Fact) }
		(&reporter{events: record}).compared([]rdzv.Comparison{equal, different}, strict)
		if got := fmt.Sprint(facts); got != want {
			t.Errorf("strict %v: reported %s, want %s", strict, got, want)
		}
	}
}

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
		if err := l.readExports(); err != nil {
			t.Fatal(err)
		}
		got := l.facts().Variables
		if want := map[string]string{"TORCH_OPEN": "o"}; !maps.Equal(got, want) {
			t.Errorf("rank %d publishes %q, want %q", rank, got, want)
		}
	}
}
