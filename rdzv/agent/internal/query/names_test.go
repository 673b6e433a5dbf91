package query

import (
	"slices"
	"testing"
)

// A job is called by its label, a hash tells two of one label apart, and a unique beginning is
// enough. What the job is called internally is accepted too.
func TestWanted(t *testing.T) {
	agents := map[owned][]identified{}
	for _, j := range []Job{
		{Name: "python3-0b00b468", Label: "train"}, {Name: "python3-77aa0102", Label: "train"},
		{Name: "4711.0", Label: "evaluate"}, {Name: "lab.37.0", Label: "evolve"}, {Name: "hydra-01020304", Label: "b"}, {Name: "old"},
	} {
		agents[owned{name: j.Name}] = []identified{{Job: j}}
	}
	hydra := owned{name: "hydra-01020304"}
	agents[hydra] = append(agents[hydra], identified{Job: Job{Name: hydra.name, Label: "a"}})
	all := shownJobs(agents)
	for word, want := range map[string][]string{
		"":                 {"a", "evaluate", "evolve", "old", "train-0b00", "train-77aa"},
		"train":            {"train-0b00", "train-77aa"},
		"train-7":          {"train-77aa"},
		"train-0b00":       {"train-0b00"},
		"t":                nil,
		"ev":               nil,
		"eva":              {"evaluate"},
		"4711":             {"evaluate"},
		"37":               {"evolve"},
		"lab.37.0":         {"evolve"},
		"0":                nil,
		"python3-0b00b468": {"train-0b00"},
		"a":                {"a"},
		"old":              {"old"},
		"x":                nil,
	} {
		var got []string
		for _, j := range wanted(all, word) {
			got = append(got, j.shown)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q names %q, want %q", word, got, want)
		}
	}
}

// A job whose name ends with no hash has one of its own.
func TestShortHash(t *testing.T) {
	a, b := shortHash("4711.0"), shortHash("4712.0")
	if len(a) != 4 || len(b) != 4 || a == b || shortHash("python3-0b00b468") != "0b00" {
		t.Errorf("the hashes are %q and %q", a, b)
	}
}

// Two runs of one command on this host have the same name.
func TestTwoRunsOfOneCommand(t *testing.T) {
	job := identified{Job: Job{Name: "python3-0b00b468", Label: "train"}}
	all := shownJobs(map[owned][]identified{
		{name: job.Name, agent: "@rdzv/agent/A"}: {job}, {name: job.Name, agent: "@rdzv/agent/B"}: {job},
	})
	if a, b := all[0].shown, all[1].shown; a == b || len(wanted(all, a)) != 1 {
		t.Errorf("they are called %q and %q, want two names", a, b)
	}
}
