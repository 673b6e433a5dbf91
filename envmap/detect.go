package envmap

import (
	"maps"
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
	r := l.placement(env)
	r.p.sources["launcher"] = Row{
		What: "launcher", Value: string(l.name), From: env.shown(r.matched...), Note: why,
	}
	if r.err == nil {
		r.p.derive()
		r.err = r.p.check()
	}
	if r.err == nil {
		explainBatchScript(r)
		checkOthers(r, l, choice)
		if l.name == None && choice == "" {
			r.p.Unclaimed = unclaimed(env)
		}
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
	// onlyChosen reports that its variables do not identify the launcher.
	onlyChosen bool
}

// order holds the launchers in the order of detection.
var order = []recogniser{
	{name: OpenMPI4, match: matchOpenMPI4, read: readOpenMPI4},
	{name: OpenMPI5, match: matchOpenMPI5, read: readOpenMPI5},
	{name: MVAPICH2, match: anyOf("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
		read: readMVAPICH2},
	{name: PALS, match: anyOf("PALS_RANKID", "PALS_APID"), read: readPALS, outer: true},
	{name: Flux, match: matchFlux, read: readFlux, outer: true},
	{name: JSM, match: anyOf("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"), read: readJSM,
		outer: true},
	{name: SlurmPMI, match: matchSlurmPMI, read: readSlurm, outer: true},
	{name: IntelMPI, match: matchIntelMPI, read: readHydra},
	{name: Hydra, match: matchHydra, read: readHydra},
	{name: Slurm, match: matchSlurm, read: readSlurm, outer: true},
	{name: Torchrun, match: matchTorchrun, read: readTorchrun},
	{name: Kubeflow, match: matchKubeflow, read: readKubeflow, outer: true},
	{name: Kubernetes, match: anyOf("JOB_COMPLETION_INDEX"), read: readKubernetes, outer: true},
	{name: UserSet, match: anyOf("RANK", "WORLD_SIZE"), read: readUserSet, onlyChosen: true},
	{name: None, match: anyOf(), read: func(*reader) {}, outer: true},
}

// anyOf recognises a launcher by any of these variables.
func anyOf(names ...string) func(Env) []string {
	return func(env Env) []string { return env.setOf(names...) }
}

// placement takes the placement that the launcher's variables describe.
func (l recogniser) placement(env Env) *reader {
	r := newReader(env, l.name, l.match(env))
	l.read(r)
	return r
}

// choose returns the chosen launcher, or the first whose variables are set.
func choose(env Env, choice Launcher) (l recogniser, why string, err error) {
	if choice == "" {
		for _, l := range order {
			if !l.onlyChosen && len(l.match(env)) > 0 {
				return l, "", nil
			}
		}
		return recogniserOf(None), "no launcher variables are set", nil
	}
	if !slices.Contains(Choices(), string(choice)) {
		return recogniser{}, "",
			&Error{Text: "cannot use launcher " + strconv.Quote(string(choice)) +
				": not one of " + strings.Join(Choices(), ", ")}
	}
	names, several := aliases[choice]
	if !several {
		names = []Launcher{choice}
	}
	for _, name := range names {
		if l := recogniserOf(name); len(l.match(env)) > 0 {
			return l, "selected by --launcher", nil
		}
	}
	return recogniserOf(names[0]), "selected by --launcher", nil
}

// recogniserOf returns the recogniser of a launcher. Every Launcher constant has one.
func recogniserOf(name Launcher) recogniser {
	return order[slices.IndexFunc(order, func(l recogniser) bool { return l.name == name })]
}

// Choices returns the values that Detect accepts as a choice besides "".
func Choices() []string {
	names := []string{"openmpi", "mpich"}
	for _, l := range order {
		names = append(names, string(l.name))
	}
	return names
}

// checkOthers looks at other launchers whose variables are also set. A launcher in whose allocation
// others are started is ignored. One that starts each process itself must agree on rank and size;
// otherwise the innermost of the two cannot be determined, and that is an error.
func checkOthers(r *reader, chosen recogniser, choice Launcher) {
	name := string(chosen.name)
	for _, l := range order {
		matched := l.match(r.env)
		if l.name == chosen.name || len(matched) == 0 || sameFamily(l.name, chosen.name) {
			continue
		}
		other, theirs := string(l.name), l.placement(r.env)
		agree := theirs.err == nil && theirs.p.Rank == r.p.Rank && theirs.p.Size == r.p.Size
		why := name + " takes precedence"
		switch {
		case choice != "":
			why = "not selected by --launcher " + string(choice)
		case l.onlyChosen: // rdzv exec replaces them, so they need not agree
			why = "no launcher is recognised by them; rdzv exec replaces them"
		case l.outer && !chosen.outer:
			why = name + " runs inside " + other + ", whose variables describe " +
				"" + name + "'s daemons"
		case !l.outer && !agree:
			rank, size := r.p.source("rank").describe(), r.p.source("size").describe()
			r.err = &Error{
				Text: "cannot determine the launcher: " + name + " sets " + rank + " and " + size +
					", but " + other + " sets " + r.env.shown(matched...),
				Hint: "select one with --launcher " + name + " or --launcher " + other,
			}
			return
		}
		r.ignore(why, matched...)
	}
}

// sameFamily reports that two launchers are variants of one, which share variables.
func sameFamily(a, b Launcher) bool {
	families := slices.AppendSeq(slices.Clone(sharing), maps.Values(aliases))
	return slices.ContainsFunc(families, func(family []Launcher) bool {
		return slices.Contains(family, a) && slices.Contains(family, b)
	})
}
