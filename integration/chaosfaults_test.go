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

// A faultKind is a way in which a job of TestChaos fails.
type faultKind struct {
	name   string
	code   int      // exit code of the job; 0 is the fault's Code
	text   string   // what the report must contain; WORD is the fault's Word
	setups []string // nil is all
	// inject causes the fault from outside when all ranks are at work. If it is nil, the rank
	// fails by itself: see fail in testbed/ranks.py.
	inject func(f *fault, j *job)
}

var faultKinds = []faultKind{
	{name: "raise", code: 1, text: "WORD"},
	{name: "cause", code: 1, text: "WORD"},
	{name: "record", code: 1, text: "WORD"},
	{name: "torch", code: 1, text: "cannot be multiplied"},
	{name: "exit", text: "WORD"},
	{name: "_exit"},
	{name: "kill", code: 128 + int(syscall.SIGKILL)},
	{name: "segv", code: 128 + int(syscall.SIGSEGV), text: "Segmentation fault"},
	{name: "abort", code: 128 + int(syscall.SIGABRT), text: "Aborted"},
	// Hydra kills the other agents, and a single agent has no others.
	{name: "agent", code: 123, setups: []string{"two agents", "mpirun"},
		inject: func(f *fault, j *job) { j.signal(j.agentOf(f.Rank), syscall.SIGKILL) }},
}

// A setup is a way to start a job of n workers: the command lines that the user runs.
type setup struct {
	name     string
	commands func(p *place, n int, program []string) [][]string
}

var setups = []setup{
	{"one agent", oneCommand(direct)},
	{"two agents", func(p *place, n int, program []string) [][]string {
		perNode := strconv.Itoa(n / 2)
		nodes := []string{"--nodes", "2", "--nproc-per-node", perNode, "--store", freeAddress(p.t)}
		return onOneHost(2, nodes, program)
	}},
	{"mpirun", oneCommand(openMPI)},
	{"hydra", oneCommand(hydra)},
}

func oneCommand(
	command func(p *place, n int, flags, program []string) []string,
) func(p *place, n int, program []string) [][]string {
	return func(p *place, n int, program []string) [][]string {
		return [][]string{command(p, n, nil, program)}
	}
}

// A fault is one failure of a campaign, and its job. The ranks get the exported fields.
type fault struct {
	Kind     string
	Injected bool    // from outside
	Rank     int     // that fails
	After    int     // number of all_reduces before
	Delay    float64 // seconds to wait then
	Code     int     // exit code
	Word     string  // printed by the rank, if it can print anything

	kind       faultKind
	setup      setup
	ranks      int
	report     string // path
	ran, right bool
}

// planFaults draws n faults from a seed. All kinds and setups are equally frequent.
func planFaults(seed uint64, n int) []fault {
	random := rand.New(rand.NewPCG(seed, 0))
	var faults []fault
	for i := range n {
		k, round := faultKinds[i%len(faultKinds)], i/len(faultKinds)
		f := fault{Kind: k.name, Injected: k.inject != nil, kind: k,
			setup: setups[round%len(setups)]}
		if k.setups != nil && !slices.Contains(k.setups, f.setup.name) {
			name := k.setups[round%len(k.setups)]
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

// checkFailedRank checks that all commands ended with the rank's code, and that there is one
// report, about this rank.
func checkFailedRank(f *fault, j *job, codes []int) {
	code := cmp.Or(f.kind.code, f.Code)
	if slices.ContainsFunc(codes, func(c int) bool { return c != code }) {
		j.t.Errorf("the commands ended with the exit codes %d, want %d", codes, code)
	}
	if n := len(j.linesWith(fmt.Sprintf("of %d failed first", f.ranks))); n != 1 {
		j.t.Errorf("%d reports were printed, want 1", n)
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
		j.t.Fatalf("the report is not JSON: %v in %s", err, text)
	}
	if report.Rank != f.Rank || report.ExitCode != code {
		j.t.Errorf("the report is about rank %d with exit code %d, want rank %d with exit code %d",
			report.Rank, report.ExitCode, f.Rank, code)
	}
	want := strings.ReplaceAll(f.kind.text, "WORD", f.Word)
	contains := func(line string) bool { return strings.Contains(line, want) }
	if !slices.ContainsFunc(append(report.Stderr, report.Message), contains) {
		j.t.Errorf("the report does not contain %q: %s", want, text)
	}
}

// checkLostAgent checks that the surviving agents name the one that was killed, and that the next
// agent removes its files. A launcher exits with its own code for the death of its child.
func checkLostAgent(f *fault, j *job, codes []int) {
	if f.setup.name == "two agents" && !slices.Contains(codes, f.kind.code) {
		j.t.Errorf("the agents ended with the exit codes %d, want %d from one", codes, f.kind.code)
	}
	if lines := j.linesWith("failed first"); len(lines) > 0 {
		j.t.Errorf("the agents reported %q, want the loss of an agent", lines)
	}
	if len(j.linesWith("rdzv:", "lost ")) == 0 {
		j.t.Error("no agent has named the one that was lost")
	}
	j.checkTree()
	j.removeLeftovers()
}
