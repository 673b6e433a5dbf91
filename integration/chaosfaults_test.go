package integration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A kind is a way in which a job of TestChaos fails.
type kind struct {
	name  string
	code  int      // exit code of the job; 0 is the one that the fault draws
	says  string   // what the report repeats; WORD is what the fault draws
	under []string // setups; nil is all
	// inject is done from outside once all ranks are at work. Where it is nil, the rank does what
	// fail in testbed/ranks.py has for the name.
	inject func(f *fault, j *job)
	check  func(f *fault, j *job, codes []int) // codes are those of the commands
}

var kinds = []kind{
	{name: "raise", code: 1, says: "WORD", check: checkBlamed},
	{name: "cause", code: 1, says: "WORD", check: checkBlamed},
	{name: "record", code: 1, says: "WORD", check: checkBlamed},
	{name: "torch", code: 1, says: "cannot be multiplied", check: checkBlamed},
	{name: "exit", says: "WORD", check: checkBlamed},
	{name: "_exit", check: checkBlamed},
	{name: "kill", code: 128 + int(syscall.SIGKILL), check: checkBlamed},
	{name: "segv", code: 128 + int(syscall.SIGSEGV), says: "Segmentation fault", check: checkBlamed},
	{name: "abort", code: 128 + int(syscall.SIGABRT), says: "Aborted", check: checkBlamed},
	// Hydra kills the other agents, and a single agent has no others.
	{name: "agent", code: 123, under: []string{"two agents", "mpirun"}, check: checkLost,
		inject: func(f *fault, j *job) { j.strike(j.agentOf(f.Rank), syscall.SIGKILL) }},
}

// A setup is a way to start a job of n workers: the commands that the user runs.
type setup struct {
	name  string
	lines func(p *place, n int, prog []string) [][]string
}

var setups = []setup{
	{"one agent", oneLine(direct)},
	{"two agents", func(p *place, n int, prog []string) [][]string {
		perNode := strconv.Itoa(n / 2)
		nodes := []string{"--nodes", "2", "--nproc-per-node", perNode, "--store", freeAddress(p.t)}
		return slices.Repeat([][]string{rdzvExec(nodes, prog)}, 2)
	}},
	{"mpirun", oneLine(openMPI)},
	{"hydra", oneLine(hydra)},
}

func oneLine(
	line func(p *place, n int, flags, prog []string) []string,
) func(p *place, n int, prog []string) [][]string {
	return func(p *place, n int, prog []string) [][]string {
		return [][]string{line(p, n, nil, prog)}
	}
}

// A fault is one failure of a campaign, and the job that it happens in. The ranks know its exported
// fields.
type fault struct {
	Kind     string
	Injected bool    // from outside
	Rank     int     // that fails
	After    int     // so many all_reduces
	Delay    float64 // and so many seconds
	Code     int     // of an exit
	Word     string  // that it says, if it can say anything

	kind       kind
	setup      setup
	ranks      int
	report     string // file
	ran, right bool
}

// plan makes n faults of a seed. All kinds and setups come equally often.
func plan(seed uint64, n int) []fault {
	random := rand.New(rand.NewPCG(seed, 0))
	var faults []fault
	for i := range n {
		k, round := kinds[i%len(kinds)], i/len(kinds)
		f := fault{Kind: k.name, Injected: k.inject != nil, kind: k, setup: setups[round%len(setups)]}
		if k.under != nil && !slices.Contains(k.under, f.setup.name) {
			name := k.under[round%len(k.under)]
			f.setup = setups[slices.IndexFunc(setups, func(s setup) bool { return s.name == name })]
		}
		f.ranks = 2 + 2*random.IntN(2)
		f.After, f.Delay = random.IntN(50), random.Float64()/50
		f.Code, f.Word = 2+random.IntN(100), fmt.Sprintf("boom-%d-%d", seed, i)
		f.Rank = random.IntN(f.ranks)
		faults = append(faults, f)
	}
	return faults
}

// checkBlamed checks that all commands end with the rank's code, and that the one report is on it.
func checkBlamed(f *fault, j *job, codes []int) {
	code := cmp.Or(f.kind.code, f.Code)
	if slices.ContainsFunc(codes, func(c int) bool { return c != code }) {
		j.t.Errorf("the commands ended with %d, want %d", codes, code)
	}
	if n := len(j.linesWith(fmt.Sprintf("of %d failed first", f.ranks))); n != 1 {
		j.t.Errorf("%d reports", n)
	}
	var report struct {
		Rank     int
		ExitCode int `json:"exit_code"`
		Message  string
		Stderr   []string
	}
	text, err := os.ReadFile(f.report)
	if err != nil {
		j.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &report); err != nil {
		j.t.Fatalf("%v in %s", err, text)
	}
	if report.Rank != f.Rank || report.ExitCode != code {
		j.t.Errorf("the report is on rank %d with code %d, want rank %d with code %d",
			report.Rank, report.ExitCode, f.Rank, code)
	}
	says := strings.ReplaceAll(f.kind.says, "WORD", f.Word)
	repeats := func(line string) bool { return strings.Contains(line, says) }
	if !slices.ContainsFunc(append(report.Stderr, report.Message), repeats) {
		j.t.Errorf("the report does not repeat %q: %s", says, text)
	}
}

// checkLost checks that the surviving agents name the one that was killed, and that the next agent
// removes what it left. A launcher ends with its own code for the death of its child.
func checkLost(f *fault, j *job, codes []int) {
	if f.setup.name == "two agents" && !slices.Contains(codes, f.kind.code) {
		j.t.Errorf("the agents ended with %d, want %d of one", codes, f.kind.code)
	}
	if len(j.linesWith("failed first")) > 0 || len(j.linesWith("rdzv:", "lost ")) == 0 {
		j.t.Error("no agent names the one that was lost")
	}
	j.checkTree()
	j.removeLeftovers()
}
