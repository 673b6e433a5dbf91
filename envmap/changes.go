package envmap

import (
	"slices"
	"strings"
)

// Changes are the differences between a worker's environment and the agent's.
type Changes struct {
	Set      []KV     // in the order in which they are printed
	Unset    []string // variables of the agent to remove, sorted
	Replaced []KV     // variables of Set with the different values that the user has given them
	Kept     []string // settings that the user has made and that are not changed
	Notes    []string // sentences for the user: what will not work
}

// replacements is a note about the variables that are replaced, none if there are none.
func (c Changes) replacements() []string {
	var list []string
	for _, old := range c.Replaced {
		list = append(list, old.Name+"="+old.Value+" by "+c.Set[c.position(old.Name)].Value)
	}
	if list == nil {
		return nil
	}
	return []string{"replacing variables of the environment: " + strings.Join(list, ", ")}
}

// Apply returns environ with the changes applied: kept entries in their order, then those set.
func (c Changes) Apply(environ []string) []string {
	result := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, ok := strings.Cut(entry, "=")
		return !ok || name == "" || c.sets(name) || slices.Contains(c.Unset, name)
	})
	for _, kv := range c.Set {
		result = append(result, kv.Name+"="+kv.Value)
	}
	return result
}

// position returns the index of a variable in c.Set, -1 if it is not set.
func (c Changes) position(name string) int {
	return slices.IndexFunc(c.Set, func(kv KV) bool { return kv.Name == name })
}

func (c Changes) sets(name string) bool { return c.position(name) >= 0 }

// worker collects the changes of env.
type worker struct {
	Changes
	env Env
}

func (w *worker) put(variables ...KV) {
	for _, kv := range variables {
		if i := w.position(kv.Name); i >= 0 {
			w.Set[i] = kv
		} else {
			w.Set = append(w.Set, kv)
		}
	}
}

// noteReplaced remembers the user's values of variables that are set to different ones.
func (w *worker) noteReplaced(variables ...KV) {
	for _, kv := range variables {
		if old := w.env[kv.Name]; old != "" && old != kv.Value {
			w.Replaced = append(w.Replaced, KV{kv.Name, old})
		}
	}
}

// setDefault sets a variable unless the environment has it, under this name or one of its others.
func (w *worker) setDefault(name, value string, others ...string) {
	if _, exists := w.env[name]; exists {
		w.Kept = append(w.Kept, name)
	} else if other := w.env.first(others...); other != "" {
		w.Kept = append(w.Kept, other)
	} else {
		w.put(KV{name, value})
	}
}

// remove removes variables that a worker must not have: the agent's own, and, if launcher is set,
// the launcher's rank variables.
func (w *worker) remove(launcher bool) {
	for name := range w.env {
		own := strings.HasPrefix(name, "RDZV_")
		if (own || launcher && isTaskVariable(name)) && !w.sets(name) {
			w.Unset = append(w.Unset, name)
		}
	}
	slices.Sort(w.Unset)
	w.Kept = slices.DeleteFunc(w.Kept, w.sets)
}

// taskVariables tell a process that it is one task of a launcher. A worker that is not that task
// must not have them (dev/launchers.md, section i): with Open MPI's and Hydra's, MPI_Init of the
// second child fails or hangs; Open MPI refuses to start with a SLURM_STEP_ID and without a PMI;
// and accelerate reads PMI_SIZE as the world size.
var taskVariables = []string{
	"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "HYDI_CONTROL_FD",
	"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS",
	"SLURM_TASK_PID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS",
	"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE",
	"PALS_RANKID", "PALS_LOCAL_RANKID",
	"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID",
}

var taskPrefixes = []string{"OMPI_", "PMIX_", "PRTE_", "PMI_", "MV2_COMM_WORLD_", "JSM_NAMESPACE_"}

func isTaskVariable(name string) bool {
	if strings.HasPrefix(name, "OMPI_ALLOW_RUN_AS_ROOT") {
		return false // a setting of the user
	}
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.Contains(taskVariables, name) || slices.ContainsFunc(taskPrefixes, hasPrefix)
}

// Shell returns changes as commands for a POSIX shell: eval "$(rdzv env)". Values may contain any
// bytes but NUL. Names that are not valid in a shell, or reserved by one so that assigning to them
// would end the evaluation, are skipped.
func Shell(set []KV, unset ...string) string {
	var b strings.Builder
	for _, name := range unset {
		if shellName(name) {
			b.WriteString("unset " + name + "\n")
		}
	}
	for _, kv := range set {
		if shellName(kv.Name) && !strings.ContainsRune(kv.Value, 0) {
			quoted := strings.ReplaceAll(kv.Value, "'", `'\''`)
			b.WriteString("export " + kv.Name + "='" + quoted + "'\n")
		}
	}
	return b.String()
}

// reservedNames are read-only, or restricted to certain values, in dash, bash, ksh or zsh.
var reservedNames = []string{
	"PPID", "UID", "EUID", "GID", "EGID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO",
	"OPTIND", "LINENO", "HISTCMD", "SRANDOM", "_", "HISTSIZE", "RANDOM", "SECONDS",
}

func shellName(name string) bool { return isName(name) && !slices.Contains(reservedNames, name) }

// isName reports whether name has the form of a shell variable's name.
func isName(name string) bool {
	const digits = "0123456789"
	const letters = "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	return name != "" && strings.Trim(name, letters+digits) == "" &&
		!strings.ContainsAny(name[:1], digits)
}
