package integration

import (
	"flag"
	"hash/fnv"
	"slices"
	"testing"
)

var wholeMatrix = flag.Bool("all", false, "run every case under every launcher, make matrix")

// A variant is one of the scenarios of a case: the one under this launcher.
type variant struct {
	of, under string
	scenario  scenario
}

// selected chooses what runs without -all: one variant of each case, so that all launchers have
// about equally many cases, and every launcher at least one. It is always the same one.
func selected(all []variant) (chosen []scenario) {
	if *wholeMatrix {
		for _, v := range all {
			chosen = append(chosen, v.scenario)
		}
		return chosen
	}
	uses := map[string]int{} // by launcher
	use := func(v variant) {
		uses[v.under]++
		chosen = append(chosen, v.scenario)
	}
	seen := map[string]bool{}
	for _, v := range all {
		if seen[v.of] {
			continue
		}
		seen[v.of] = true
		least := v
		for _, other := range all {
			if other.of == v.of && uses[other.under] < uses[least.under] {
				least = other
			}
		}
		use(least)
	}
	for _, v := range all {
		if uses[v.under] == 0 {
			use(v)
		}
	}
	return chosen
}

// underLaunchers are the variants of a case under the launchers that start rdzv exec on one host.
func underLaunchers(of string, test func(t *testing.T, l launcher)) (all []variant) {
	for _, l := range launchers {
		all = append(all, variant{of, l.name, scenario{of + "/" + l.name, func(t *testing.T) {
			test(t, l)
		}}})
	}
	return all
}

// forEachJobLauncher runs a scenario under each launcher, alternating between one host and two:
// without -all under two of them, which depend on the test's name.
func forEachJobLauncher(t *testing.T, run func(t *testing.T, launcher string, hosts int)) {
	name := fnv.New32a()
	_, _ = name.Write([]byte(t.Name()))
	first := int(name.Sum32()>>8) % 2
	var scenarios []scenario
	for i, launcher := range jobLaunchers {
		if !*wholeMatrix && i/2 != first {
			continue
		}
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) {
			run(t, launcher, 1+i%2)
		}})
	}
	runConcurrently(t, scenarios)
}

// Whatever the cases and launchers are: each case and each launcher is selected, a case only once
// unless another launcher would be missing, and no launcher has two cases more than another if all
// cases can have all launchers.
func TestSelection(t *testing.T) {
	defer func(all bool) { *wholeMatrix = all }(*wholeMatrix)
	for cases := 1; cases <= 20; cases++ {
		for most := 1; most <= 5; most++ {
			for _, without := range []int{-1, 0, most - 1} { // the launcher that odd cases do not have
				checkSelection(t, cases, most, without)
			}
		}
	}
}

func checkSelection(t *testing.T, cases, most, without int) {
	t.Helper()
	ofs, unders := map[string]int{}, map[string]int{}
	names := map[string]bool{}
	var all []variant
	for c := range cases {
		for l := range most {
			if c%2 == 1 && l == without && most > 1 {
				continue
			}
			of, under := string(rune('a'+c)), string(rune('A'+l))
			names[of], names[under] = true, true
			all = append(all, variant{of, under, scenario{name: of + under, run: func(*testing.T) {
				ofs[of]++
				unders[under]++
			}}})
		}
	}
	*wholeMatrix = true
	if n := len(selected(all)); n != len(all) {
		t.Errorf("with -all %d of %d variants are selected", n, len(all))
	}
	*wholeMatrix = false
	chosen := selected(all)
	for _, s := range chosen {
		s.run(t)
	}
	if len(ofs)+len(unders) != len(names) || len(chosen) > max(cases, cases+most-1) {
		t.Errorf("%d cases, %d launchers: selected %v, %v", cases, most, ofs, unders)
	}
	var counts []int
	for _, n := range unders {
		counts = append(counts, n)
	}
	if slices.Max(counts) > slices.Min(counts)+1 && without < 0 {
		t.Errorf("%d cases, %d launchers: numbers of cases %v", cases, most, unders)
	}
	if cases >= most && without < 0 && len(chosen) != cases {
		t.Errorf("%d cases, %d launchers: %d are selected", cases, most, len(chosen))
	}
}
