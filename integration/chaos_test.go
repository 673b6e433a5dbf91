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
	chaosFaults = flag.Int("chaos-n", 10, "faults of TestChaos")
	chaosSeed   = flag.Uint64("seed", 1, "seed of TestChaos: which rank fails, when, in which job")
	chaosReal   = flag.Bool("real", false, "TestChaos starts a Python for each rank, a second each")
)

// A fault campaign: jobs of PyTorch ranks that all_reduce over gloo, one rank of which fails,
// whereupon the others crash within milliseconds because their connections break. The report
// names the rank that failed, how it ended and what it said, and the exit code is that rank's.
// make chaos runs 500 faults; a fault is the same in every campaign of its seed.
func TestChaos(t *testing.T) {
	prog := rankProgram(t)
	faults := plan(*chaosSeed, *chaosFaults)
	var scenarios []scenario
	for i := range faults {
		f := &faults[i]
		name := fmt.Sprintf("%d %s of rank %d of %d, %s", i, f.Kind, f.Rank, f.ranks, f.setup.name)
		scenarios = append(scenarios, scenario{name, func(t *testing.T) { f.run(t, prog) }})
	}
	runConcurrently(t, scenarios)
	t.Log("\n" + faultTable(faults))
}

// rankProgram is the command line of a rank. Importing torch takes a second of a processor, so one
// process does so and forks all ranks; the worker that rdzv supervises stands in for such a rank.
func rankProgram(t *testing.T) []string {
	t.Helper()
	script := filepath.Join(testbed, "ranks.py")
	if *chaosReal {
		return []string{python, script, "rank"}
	}
	p := newPlace(t)
	socket := filepath.Join(p.root, "ranks")
	server := p.startWith([]string{"OMP_NUM_THREADS=1"}, python, script, "serve", socket)
	t.Cleanup(func() {
		kill(server.cmd.Process.Pid)
		<-server.done
	})
	server.waitFor("listening")
	return []string{python, "-IS", script, "forked", socket}
}

// run runs the fault's job and checks how it ends.
func (f *fault) run(t *testing.T, prog []string) {
	t.Cleanup(func() { f.ran, f.right = true, !t.Failed() }) // after the checks of the place
	j := &job{place: newPlace(t), signalled: map[int]syscall.Signal{}}
	t.Cleanup(j.checkTree)
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	f.report = filepath.Join(j.root, "report.json")
	env := []string{"CHAOS_FAULT=" + string(text), "CHAOS_DIR=" + j.dir("job"),
		"RDZV_REPORT=" + f.report, "OMP_NUM_THREADS=1"}
	for _, line := range f.setup.lines(j.place, f.ranks, prog) {
		j.commands = append(j.commands, j.startWith(env, line...))
	}
	if f.Injected {
		for _, command := range j.commands {
			command.waitFor("at work")
		}
		j.workers = records(t, j.dir("job"), f.ranks)
		f.kind.inject(f, j)
	}
	var codes []int
	for _, command := range j.commands {
		codes = append(codes, command.code())
	}
	f.kind.check(f, j, codes)
}

// faultTable counts by kind and setup how many faults were right, of those that ran.
func faultTable(faults []fault) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s", "fault")
	for _, s := range setups {
		fmt.Fprintf(&b, "%14s", s.name)
	}
	var right, ran int
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n%-8s", k.name)
		for _, s := range setups {
			var rightHere, ranHere int
			for _, f := range faults {
				if f.ran && f.Kind == k.name && f.setup.name == s.name {
					ranHere++
					if f.right {
						rightHere++
					}
				}
			}
			fmt.Fprintf(&b, "%14s", fmt.Sprintf("%d of %d", rightHere, ranHere))
			right, ran = right+rightHere, ran+ranHere
		}
	}
	return fmt.Sprintf("%s\nright: %d of %d\n", &b, right, ran)
}
