package envmap

import (
	"slices"
	"strings"
)

// An Export selects variables that the workers of all nodes get from rank 0's agent.
type Export struct {
	Name   string // of a variable, or the beginning of names
	Prefix bool   // all variables whose names begin with Name
	Given  bool   // Value is the variable's value, whatever the environment has
	Value  string
}

// String is the export without the value, which may be a secret.
func (e Export) String() string {
	if e.Prefix {
		return e.Name + "*"
	}
	return e.Name
}

// MaxExported is how many bytes all exported variables may have together, as NAME=VALUE with an end
// each. The kernel accepts no longer variable.
const MaxExported = 128 << 10

// Exported returns the variables that exports select from env, as NAME=VALUE sorted by name, and
// those of exports that select none. A later export of a variable takes precedence over an earlier
// one, and one that names it in full over a prefix.
func Exported(env Env, exports []Export) (variables []string, none []Export, err error) {
	selected := Env{}
	for _, prefix := range []bool{true, false} {
		for _, e := range exports {
			if e.Prefix == prefix && !e.selectFrom(env, selected) {
				none = append(none, e)
			}
		}
	}
	size := 0
	for name, value := range selected {
		variables = append(variables, name+"="+value)
		size += len(name) + len(value) + len("=\x00")
	}
	if size > MaxExported {
		return nil, nil, &Error{Text: "cannot export variables of " + itoa(size) +
			" bytes: at most " + itoa(MaxExported) + " are allowed"}
	}
	slices.Sort(variables)
	return variables, none, nil
}

// selectFrom adds what e selects, and reports whether that is anything.
func (e Export) selectFrom(env, selected Env) (found bool) {
	if !e.Prefix {
		value, set := env[e.Name]
		if e.Given {
			value = e.Value
		}
		if e.Given || set {
			selected[e.Name] = value
		}
		return e.Given || set
	}
	for name, value := range env {
		if strings.HasPrefix(name, e.Name) && unexportable(name) == "" && !ofOneNode(name) {
			selected[name], found = value, true
		}
	}
	return found
}

// Override returns environ with exported variables, and the names of those that replace another
// value of environ.
func Override(environ, exported []string) (result, replaced []string) {
	own, set := ParseEnv(environ), ParseEnv(exported)
	var changes Changes
	for _, entry := range exported {
		name, _, _ := strings.Cut(entry, "=")
		changes.Set = append(changes.Set, KV{name, set[name]})
		if old, exists := own[name]; exists && old != set[name] {
			replaced = append(replaced, name)
		}
	}
	return changes.Apply(environ), replaced
}

// unexportable says why a variable, or every variable that begins so, belongs to one worker or one
// agent; "" if it does not.
func unexportable(name string) string {
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	switch {
	case hasPrefix("RDZV_"):
		return "variables of rdzv are not passed to workers"
	case slices.Contains(identityVariables, name), hasPrefix("TORCHELASTIC_"):
		return "each worker has its own"
	case isTaskVariable(name), slices.ContainsFunc(launcherPrefixes, hasPrefix), isNodeIndex(name):
		return "it is a variable of the launcher"
	}
	return ""
}

// SameButForTask tells whether two tasks of a launcher have the same variables, apart from those by
// which it tells them who they are and which devices they have.
func SameButForTask(a, b Env) bool {
	other := func(a, b Env) bool {
		for name, value := range a {
			if in, set := b[name]; (!set || in != value) && !isOfTask(name) {
				return true
			}
		}
		return false
	}
	return !other(a, b) && !other(b, a)
}

func isOfTask(name string) bool {
	return unexportable(name) != "" || slices.Contains(deviceVariables(), name)
}

var identityVariables = []string{
	"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK",
	"GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
}

// launcherPrefixes are those of variables that launchers set, in addition to taskPrefixes.
var launcherPrefixes = []string{
	"SLURM", "HYDI_", "I_MPI_HYDRA_", "I_MPI_INFO_", "I_MPI_MPIRUN", "MPI_LOCAL", "PALS_", "FLUX_",
	"PBS_", "LSB_", "PET_", "JOB_COMPLETION_INDEX",
}

// ofOneNode tells whether a variable is exported only if it is named in full: it usually describes
// one node, or changes which program and libraries run.
func ofOneNode(name string) bool {
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	byPlatform := func(pl platform) bool { return pl.prefix != "" && hasPrefix(pl.prefix) }
	return slices.ContainsFunc(nodePrefixes, hasPrefix) ||
		slices.ContainsFunc(platforms, byPlatform) || slices.Contains(nodeVariables, name) ||
		slices.Contains(deviceVariables(), name)
}

// nodePrefixes are, besides those of platforms, of the linker and of Volcano's tasks.
var nodePrefixes = []string{"LD_", "VK_"}

var nodeVariables = []string{
	"PATH", "HOME", "HOSTNAME", "PWD", "OLDPWD", "TMPDIR", "XDG_RUNTIME_DIR", "GPU_DEVICE_ORDINAL",
	"NODE_ADDR", // of RunPod
}

// fileVariables determine which program runs and which modules python finds.
var fileVariables = []string{"PATH", "HOME", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE"}

// deviceVariables select the devices of a process.
func deviceVariables() (names []string) {
	for _, v := range vendors {
		for _, layer := range v.layers {
			names = append(names, layer...)
		}
	}
	return names
}

// MayPreventStart tells whether exported variables decide which files and devices a worker starts
// with, so that it may fail to start on some node.
func MayPreventStart(exported []string) bool {
	return slices.ContainsFunc(exported, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(fileVariables, name) || slices.Contains(deviceVariables(), name)
	})
}
