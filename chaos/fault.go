package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
)

// fault is one rank's failure, and the job that it happens in.
type fault struct {
	Number int     `json:"number"`
	Kind   string  `json:"kind"`
	Rank   int     `json:"rank"`  // that fails
	After  int     `json:"after"` // so many all_reduces
	Delay  float64 `json:"delay"` // and so many seconds
	Code   int     `json:"code"`  // of an exit
	Word   string  `json:"word"`  // that it says, if it can say anything
	Mark   string  `json:"mark"`  // file that tells that the ranks are at work

	ranks  int
	layout string
}

// kinds are the ways to fail; see zygote.py.
var kinds = []string{"raise", "cause", "record", "torch", "exit", "_exit", "kill", "segv", "abort", "agent"}

// layouts are the ways to start a job: one agent by hand, two, one for every rank.
var layouts = []string{"one agent", "two agents", "mpirun", "hydra"}

// tellers are the layouts in which somebody is left to tell of an agent that was killed; Hydra kills all.
var tellers = []string{"two agents", "mpirun"}

// plan makes n faults of a seed. All kinds and layouts come equally often.
func plan(seed uint64, n int) []fault {
	random := rand.New(rand.NewPCG(seed, 0))
	var faults []fault
	for i := range n {
		f := fault{
			Number: i, Kind: kinds[i%len(kinds)], layout: layouts[i/len(kinds)%len(layouts)], ranks: 2 + 2*random.IntN(2),
			After: random.IntN(50), Delay: random.Float64() / 50, Code: 2 + random.IntN(100), Word: fmt.Sprintf("boom-%d-%d", seed, i),
		}
		f.Rank = random.IntN(f.ranks)
		if f.Kind == "agent" && !slices.Contains(tellers, f.layout) {
			f.layout = tellers[i/len(kinds)%len(tellers)]
		}
		faults = append(faults, f)
	}
	return faults
}

// expect is the exit code that a shell would show for the rank, 123 for one whose agent is killed.
func (f fault) expect() int {
	switch f.Kind {
	case "exit", "_exit":
		return f.Code
	case "kill":
		return 128 + int(syscall.SIGKILL)
	case "segv":
		return 128 + int(syscall.SIGSEGV)
	case "abort":
		return 128 + int(syscall.SIGABRT)
	case "agent":
		return 123
	}
	return 1
}

// says is what the report must repeat of what the rank said; "" where it dies without a word.
func (f fault) says() string {
	switch f.Kind {
	case "segv":
		return "Segmentation fault"
	case "abort":
		return "Aborted"
	case "torch":
		return "cannot be multiplied"
	case "_exit", "kill", "agent":
		return ""
	}
	return f.Word
}
