package integration

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var (
	chaosFaults = flag.Int("chaos-n", 10, "number of faults of TestChaos, and of TestChaosOfRestarts")
	chaosSeed   = flag.Uint64("seed", 1, "seed of both: which rank fails, when, in which job")
	chaosReal   = flag.Bool("real", false,
		"TestChaos starts a Python for each rank, which takes 1 s")
)

// A fault campaign: jobs of PyTorch ranks that all_reduce over gloo, one rank of which fails. The
// others fail within milliseconds, because their connections break. The report must have the rank
// that failed first, how it ended and what it printed, and the exit code must be that rank's. make
// chaos runs 500 faults. A fault is the same in every campaign with its seed.
func TestChaos(t *testing.T) {
	program := []string{python, filepath.Join(testbed, "ranks.py"), "fault"}
	if !*chaosReal {
		program = startRankServer(t, "fault")
	}
	faults := planFaults(*chaosSeed, *chaosFaults)
	var scenarios []scenario
	for i := range faults {
		f := &faults[i]
		name := fmt.Sprintf("%d %s of rank %d of %d, %s", i, f.Kind, f.Rank, f.ranks, f.setup.name)
		scenarios = append(scenarios, scenario{name, func(t *testing.T) { f.run(t, program) }})
	}
	runConcurrently(t, scenarios)
	t.Log("\n" + faultTable(faults))
}

// startRankServer starts a server of testbed/ranks.py. It returns the command line of a rank that
// runs a program of ranks.py.
func startRankServer(t *testing.T, program string) []string {
	t.Helper()
	script := filepath.Join(testbed, "ranks.py")
	p := newPlace(t)
	socket := filepath.Join(p.root, "ranks")
	server := p.startWith([]string{"OMP_NUM_THREADS=1"}, python, script, "serve", socket)
	t.Cleanup(func() {
		kill(server.cmd.Process.Pid)
		<-server.done
	})
	server.waitFor("listening")
	return []string{python, "-IS", script, program, socket}
}

// run runs the fault's job and checks how it ends.
func (f *fault) run(t *testing.T, program []string) {
	t.Cleanup(func() { f.ran, f.right = true, !t.Failed() }) // after the checks of the place
	j := &job{place: newPlace(t), signalled: map[int]syscall.Signal{}}
	t.Cleanup(j.checkTree)
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	f.report = filepath.Join(j.root, "report.json")
	env := []string{"RANKS_FAULT=" + string(text), "RANKS_DIR=" + j.records(),
		"RDZV_REPORT=" + f.report, "OMP_NUM_THREADS=1"}
	for _, line := range f.setup.commands(j.place, f.ranks, program) {
		j.commands = append(j.commands, j.startWith(env, line...))
	}
	if f.Injected {
		for _, command := range j.commands {
			command.waitFor("at work")
		}
		j.workers = records(t, j.records(), f.ranks)
		f.kind.inject(f, j)
	}
	var codes []int
	for _, command := range j.commands {
		codes = append(codes, command.code())
	}
	if f.Injected {
		checkLostAgent(f, j, codes)
	} else {
		checkFailedRank(f, j, codes)
	}
}

// faultTable counts, by kind and setup, the faults that were reported correctly, of those that ran.
func faultTable(faults []fault) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s", "fault")
	for _, s := range setups {
		fmt.Fprintf(&b, "%14s", s.name)
	}
	count := func(kind, setup string) (right, ran int) {
		for _, f := range faults {
			if f.ran && (kind == "" || f.Kind == kind && f.setup.name == setup) {
				ran++
				if f.right {
					right++
				}
			}
		}
		return right, ran
	}
	for _, k := range faultKinds {
		fmt.Fprintf(&b, "\n%-8s", k.name)
		for _, s := range setups {
			right, ran := count(k.name, s.name)
			fmt.Fprintf(&b, "%14s", fmt.Sprintf("%d of %d", right, ran))
		}
	}
	right, ran := count("", "")
	return fmt.Sprintf("%s\nright: %d of %d\n", &b, right, ran)
}
