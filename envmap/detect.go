package envmap

import (
	"cmp"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"rdzv/internal/spelling"
)

// Given decides a placement together with the environment, see DetectGiven. The zero value leaves
// it to the environment.
type Given struct {
	// Launcher is one of Choices; "" recognises it.
	Launcher Launcher
	// Nodes is the number of nodes that the user has given, 0 without one. It counts where the
	// platform does not set it; 1 says that this process is alone, whatever a platform sets.
	Nodes int
	// Host is the name of this host, and Root its file system, of which etc/hosts is read. In a pod
	// they name rank 0's pod. Both may be omitted.
	Host string
	Root fs.FS
}

// Detect is [DetectGiven] of a choice alone.
func Detect(env Env, choice Launcher) (Placement, error) {
	return DetectGiven(env, Given{Launcher: choice})
}

// DetectGiven takes the placement of this process from its environment. Without a choice it
// recognises the launcher; otherwise variables of other launchers are ignored. An environment
// without a launcher is a placement too: None, with every number Unknown. Before a job is made of
// the placement, see [Placement.CheckComplete].
//
// An error is an *Error that names the variables that are missing, malformed or contradictory.
func DetectGiven(env Env, given Given) (Placement, error) {
	choice := given.Launcher
	l, why, err := choose(env, given)
	if err != nil {
		return Placement{}, err
	}
	r := l.placement(env, given)
	if r.lacks != "" && r.hint == "" {
		r.err.Hint = hintLacking(r, l)
	}
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
		if choice == "" {
			findUnclaimed(r, l)
		}
	}
	if r.err != nil {
		if choice != "" && r.err.Hint == hintLauncher {
			r.err.Hint = "omit --launcher " + string(choice) + " to recognise the launcher, or " +
				"ignore all with --launcher none"
		}
		return Placement{}, r.err
	}
	return r.p, nil
}

// hintLacking is what to do about a launcher without one of its variables.
func hintLacking(r *reader, l recogniser) string {
	choice := r.given.Launcher
	switch {
	case len(r.matched) == 0 && l.start == "":
		return "omit --launcher " + string(choice) + ": " + string(l.name) +
			" has not started this process"
	case len(r.matched) == 0:
		return "omit --launcher " + string(choice) + ", or start it with " + l.start +
			" rdzv exec -- PROGRAM"
	}
	say := "export " + r.lacks + "=N, N being the number of all tasks"
	if r.p.Rank == Unknown {
		say = "pass on all variables of the launcher to each process, for example into a container"
	}
	for _, other := range order() {
		if choice == "" && other.name != l.name && other.complete(r.env, r.given) {
			say += "; or use those of another one with --launcher " + string(other.name)
			break
		}
	}
	return say + "; or ignore all with --launcher none"
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
	// platform reports that it is one of the platforms.
	platform bool
	// set returns its variables, which identify it only if it is chosen; nil if match does.
	set func(Env) []string
	// start begins a command line that starts a command; "" if there is none.
	start string
}

// order is the launchers in the order of detection. What has started this very process comes
// before the platforms, on whose nodes it may run.
var order = sync.OnceValue(func() []recogniser {
	return slices.Concat(launchers, fromPlatforms(), []recogniser{
		{name: UserSet, match: anyOf("RANK", "WORLD_SIZE"), read: readUserSet, onlyChosen: true},
		{name: None, match: anyOf(), read: func(*reader) {}, outer: true},
	})
})

func fromPlatforms() (list []recogniser) {
	for _, pl := range platforms {
		list = append(list, recogniser{
			name: pl.launcher, match: pl.match, read: pl.read, set: pl.set, outer: true,
			platform: true,
		})
	}
	return list
}

var launchers = []recogniser{
	{name: OpenMPI4, start: "mpirun -n N", match: matchOpenMPI4, read: readOpenMPI4},
	{name: OpenMPI5, start: "mpirun -n N", match: matchOpenMPI5, read: readOpenMPI5},
	{name: MVAPICH2, match: anyOf("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
		start: "mpirun_rsh -np N", read: readMVAPICH2},
	{name: PALS, match: anyOf("PALS_RANKID", "PALS_APID"), read: readPALS, outer: true,
		start: "mpiexec -n N"},
	{name: Flux, match: matchFlux, read: readFlux, outer: true, start: "flux run -n N"},
	{name: JSM, match: anyOf("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"), read: readJSM,
		outer: true, start: "jsrun -n N"},
	{name: SlurmPMI, match: matchSlurmPMI, read: readSlurm, outer: true,
		start: "srun --mpi=pmi2 -n N"},
	{name: IntelMPI, match: matchIntelMPI, read: readHydra, start: "mpiexec -n N"},
	{name: Hydra, match: matchHydra, read: readHydra, start: "mpiexec -n N"},
	{name: Slurm, match: matchSlurm, read: readSlurm, outer: true, start: "srun -n N"},
	{name: Torchrun, match: matchTorchrun, read: readTorchrun},
}

// anyOf recognises a launcher by any of these variables.
func anyOf(names ...string) func(Env) []string {
	return func(env Env) []string { return env.setOf(names...) }
}

// placement takes the placement that the launcher's variables describe.
func (l recogniser) placement(env Env, given Given) *reader {
	r := newReader(env, l.name, l.match(env))
	r.given = given
	l.read(r)
	return r
}

// complete tells whether the environment has what a job of this launcher needs.
func (l recogniser) complete(env Env, given Given) bool {
	if l.onlyChosen || len(l.match(env)) == 0 {
		return false
	}
	r := l.placement(env, given)
	return r.err == nil && r.p.Rank != Unknown && r.p.Size != Unknown
}

// tellsMore tells whether the variables of a launcher, some of which are missing, are those of a
// job of more tasks than another one says.
func (r *reader) tellsMore(than Placement) bool {
	return r.p.Rank >= than.Size || r.p.Size > than.Size
}

// choose returns the chosen launcher, or the first whose variables are set. One of which some are
// missing does not count if another one is complete, unless both cannot be true.
func choose(env Env, given Given) (l recogniser, why string, err error) {
	choice := given.Launcher
	if choice == "" {
		l, why = recognise(env, given)
		return l, why, nil
	}
	if err := choice.Check(); err != nil {
		return recogniser{}, "", err
	}
	names, several := aliases[choice]
	if !several {
		names = []Launcher{choice}
	}
	const selected = "selected by --launcher"
	list := recognisersOf(names...)
	for _, l := range list {
		if len(l.match(env)) > 0 {
			return l, selected, nil
		}
	}
	for _, l := range list {
		if l.set != nil && len(l.set(env)) > 0 {
			return l, selected, nil
		}
	}
	return list[0], selected, nil
}

// recognise returns the launcher of this process.
func recognise(env Env, given Given) (l recogniser, why string) {
	var lacking []*reader
	var first recogniser
	for _, l := range order() {
		alone := l.platform && given.Nodes == 1
		if l.onlyChosen || alone || len(l.match(env)) == 0 {
			continue
		}
		r := l.placement(env, given)
		if r.lacks != "" && !l.platform {
			if lacking = append(lacking, r); len(lacking) == 1 {
				first = l
			}
			continue
		}
		more := func(r2 *reader) bool { return r2.tellsMore(r.p) }
		if len(lacking) > 0 && (!l.complete(env, given) || slices.ContainsFunc(lacking, more)) {
			break
		}
		return l, ""
	}
	if len(lacking) > 0 {
		return first, ""
	}
	return recognisersOf(None)[0], "no launcher variables are set"
}

// recognisersOf returns the recognisers of launchers. Every Launcher constant has one; Kubeflow has
// two.
func recognisersOf(names ...Launcher) (list []recogniser) {
	for _, name := range names {
		for _, l := range order() {
			if l.name == name {
				list = append(list, l)
			}
		}
	}
	return list
}

// Choices returns the values that Detect accepts as a choice besides "".
func Choices() []string {
	names := []string{"openmpi", "mpich"}
	for _, l := range order() {
		names = append(names, string(l.name))
	}
	return slices.Compact(names)
}

// Check rejects what Detect does not accept as a choice, and suggests what was probably meant.
func (l Launcher) Check() error {
	if l == "" || slices.Contains(Choices(), string(l)) {
		return nil
	}
	err := &Error{Text: "cannot use launcher " + strconv.Quote(string(l)) + ": not one of " +
		strings.Join(Choices(), ", ")}
	name := strings.ToLower(string(l))
	near := map[string]string{
		"ompi": "openmpi", "open-mpi": "openmpi", "mpirun": "openmpi", "srun": "slurm",
		"sbatch": "slurm", "mpiexec": "mpich", "impi": "intelmpi", "k8s": "kubernetes",
		"trainer": "kubeflow", "pytorch": "torchrun",
	}[name]
	if near = cmp.Or(near, spelling.Nearest(name, Choices())); near != "" {
		err.Hint = "did you mean --launcher " + near + "?"
	}
	return err
}

// checkOthers looks at other launchers whose variables are also set. A launcher in whose allocation
// others are started is ignored. One that starts each process itself must agree on rank and size;
// otherwise the innermost of the two cannot be determined, and that is an error.
func checkOthers(r *reader, chosen recogniser, choice Launcher) {
	name := string(chosen.name)
	for _, l := range order() {
		matched := l.match(r.env)
		if l.name == chosen.name || len(matched) == 0 || sameFamily(l.name, chosen.name) {
			continue
		}
		other, theirs := string(l.name), l.placement(r.env, r.given)
		lacking := theirs.lacks != "" && !l.platform && !theirs.tellsMore(r.p)
		agree := theirs.err == nil && theirs.p.Rank == r.p.Rank && theirs.p.Size == r.p.Size
		why := name + " takes precedence"
		switch {
		case choice != "":
			why = "not selected by --launcher " + string(choice)
		case l.platform && chosen.name == None:
			why = "--nodes 1 makes this process a job of its own"
		case l.onlyChosen: // rdzv exec replaces them, so they need not agree
			why = "no launcher is recognised by them; rdzv exec replaces them"
		case l.outer && !chosen.outer:
			why = name + " runs inside " + other + ", whose variables describe " +
				"" + name + "'s daemons"
		case lacking:
			why = theirs.lacks + " is not set"
			r.p.Lacking = append(r.p.Lacking, r.env.shown(matched...)+": "+why)
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
