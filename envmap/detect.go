package envmap

import (
	"slices"
	"strconv"
	"strings"
)

// Detect takes the placement of this process from its environment. With an empty choice it
// recognises the launcher; otherwise choice names the launcher (see Choices), and variables of
// other launchers are ignored. An environment without a launcher is a placement too: None, with
// every number Unknown.
//
// An error is an *Error that names the variables that are missing, malformed or contradictory.
func Detect(env Env, choice Launcher) (Placement, error) {
	l, why, err := choose(env, choice)
	if err != nil {
		return Placement{}, err
	}
	r := newReader(env, l)
	r.p.rows = append(r.p.rows, Row{
		What: "launcher", Value: string(l.name), From: env.shown(r.matched...), Note: why,
	})
	l.read(r)
	if r.err == nil {
		r.p.derive()
		r.err = check(r.p)
	}
	if r.err == nil {
		explainBatchScript(r)
		checkOthers(r, l, choice)
	}
	if r.err != nil {
		return Placement{}, r.err
	}
	return r.p, nil
}

// A recogniser detects one launcher.
type recogniser struct {
	name Launcher
	// match returns the variables by which the launcher is recognised, none if it is absent.
	match func(Env) []string
	// read takes the placement from the variables.
	read func(*reader)
	// outer reports that other launchers are commonly started inside this one's allocation, so
	// that its variables need not describe their tasks.
	outer bool
}

// order holds the launchers in the order of detection.
var order = []recogniser{
	{name: OpenMPI4, match: matchOpenMPI4, read: readOpenMPI4},
	{name: OpenMPI5, match: matchOpenMPI5, read: readOpenMPI5},
	{name: MVAPICH2, match: matchMVAPICH2, read: readMVAPICH2},
	{name: PALS, match: matchPALS, read: readPALS, outer: true},
	{name: Flux, match: matchFlux, read: readFlux, outer: true},
	{name: JSM, match: matchJSM, read: readJSM, outer: true},
	{name: SlurmPMI, match: matchSlurmPMI, read: readSlurmPMI, outer: true},
	{name: IntelMPI, match: matchIntelMPI, read: readHydra},
	{name: Hydra, match: matchHydra, read: readHydra},
	{name: Slurm, match: matchSlurm, read: readSlurm, outer: true},
	{name: Torchrun, match: matchTorchrun, read: readTorchrun},
	{name: Kubeflow, match: matchKubeflow, read: readKubeflow, outer: true},
	{name: Kubernetes, match: matchKubernetes, read: readKubernetes, outer: true},
	{name: None, match: func(Env) []string { return nil }, read: func(*reader) {}, outer: true},
}

// find returns the recogniser of a launcher. Every Launcher constant has one.
func find(name Launcher) recogniser {
	return order[slices.IndexFunc(order, func(l recogniser) bool { return l.name == name })]
}

// choose returns the chosen launcher, or the first whose variables are set.
func choose(env Env, choice Launcher) (l recogniser, why string, err error) {
	if choice == "" {
		for _, l := range order {
			if len(l.match(env)) > 0 {
				return l, "", nil
			}
		}
		return find(None), "no launcher variables are set", nil
	}
	names := candidates(choice)
	if names == nil {
		text := "cannot use launcher " + strconv.Quote(string(choice)) + ": not one of "
		return recogniser{}, "", &Error{Text: text + strings.Join(Choices(), ", ")}
	}
	for _, name := range names {
		if l := find(name); len(l.match(env)) > 0 {
			return l, "selected by --launcher", nil
		}
	}
	return find(names[0]), "selected by --launcher", nil
}

// Choices returns the values that Detect accepts as a choice besides "".
func Choices() []string {
	names := []string{"openmpi", "mpich"}
	for _, l := range order {
		names = append(names, string(l.name))
	}
	return names
}

// candidates returns the launchers that a choice stands for, nil for an unknown choice.
func candidates(choice Launcher) []Launcher {
	if several, ok := aliases[choice]; ok {
		return several
	}
	if slices.ContainsFunc(order, func(l recogniser) bool { return l.name == choice }) {
		return []Launcher{choice}
	}
	return nil
}

// checkOthers looks at other launchers whose variables are also set. A launcher in whose allocation
// others are started is ignored. One that starts each process itself must agree on rank and size;
// otherwise the innermost of the two cannot be determined, and that is an error.
func checkOthers(r *reader, chosen recogniser, choice Launcher) {
	for _, l := range order {
		matched := l.match(r.env)
		if l.name == chosen.name || len(matched) == 0 || sameFamily(l.name, chosen.name) {
			continue
		}
		if choice == "" && !l.outer && disagrees(l, r.env, r.p) {
			name, other := string(chosen.name), string(l.name)
			rank, size := r.p.Source("rank").describe(), r.p.Source("size").describe()
			r.err = &Error{
				Text: "cannot determine the launcher: " + name + " sets " + rank + " and " + size +
					", but " + other + " sets " + r.env.shown(matched...),
				Hint: "select one with --launcher " + name + " or --launcher " + other,
			}
			return
		}
		r.ignore(ignoreReason(chosen, l, matched, choice), matched...)
	}
}

// disagrees reports that l sets a different rank or size. RANK and WORLD_SIZE without
// TORCHELASTIC_RUN_ID were not set by torchrun: they are replaced and need not agree.
func disagrees(l recogniser, env Env, p Placement) bool {
	if l.name == Torchrun && !env.has("TORCHELASTIC_RUN_ID") {
		return false
	}
	other := newReader(env, l)
	l.read(other)
	return other.err != nil || other.p.Rank != p.Rank || other.p.Size != p.Size
}

// sameFamily reports that two launchers are variants of one, which share variables.
func sameFamily(a, b Launcher) bool {
	for _, family := range aliases {
		if slices.Contains(family, a) && slices.Contains(family, b) {
			return true
		}
	}
	return false
}

// ignoreReason explains why the variables of l are ignored.
func ignoreReason(chosen, l recogniser, matched []string, choice Launcher) string {
	name := string(chosen.name)
	switch {
	case choice != "":
		return "not selected by --launcher " + string(choice)
	case l.name == Torchrun && !slices.Contains(matched, "TORCHELASTIC_RUN_ID"):
		return "not set by torchrun; " + name + " takes precedence"
	case l.outer && !chosen.outer:
		outer := string(l.name)
		return name + " runs inside " + outer + ", whose variables describe " + name + "'s daemons"
	}
	return name + " takes precedence"
}
