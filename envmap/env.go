package envmap

import (
	"slices"
	"strconv"
	"strings"
)

// Unknown stands for a number that is not known.
const Unknown = -1

// Env is an environment: name to value.
type Env map[string]string

// ParseEnv parses entries of the form KEY=VALUE, as returned by os.Environ. Of several entries with
// the same name the last one counts, as for a child of os/exec. Entries without a name or without
// "=" are skipped.
func ParseEnv(environ []string) Env {
	env := make(Env, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			env[name] = value
		}
	}
	return env
}

// has reports whether name is set and not empty. No launcher sets a variable to the empty string,
// and "RANK= program" is the shell's way to remove one.
func (e Env) has(name string) bool { return e[name] != "" }

// first returns the first of names that is set, or "".
func (e Env) first(names ...string) string {
	if i := slices.IndexFunc(names, e.has); i >= 0 {
		return names[i]
	}
	return ""
}

// setOf returns those of names that are set.
func (e Env) setOf(names ...string) []string {
	var set []string
	for _, name := range names {
		if e.has(name) {
			set = append(set, name)
		}
	}
	return set
}

// shown returns those of names that are set, as "A=1, B=2".
func (e Env) shown(names ...string) string {
	set := e.setOf(names...)
	for i, name := range set {
		set[i] = name + "=" + e[name]
	}
	return strings.Join(set, ", ")
}

// KV is a variable.
type KV struct{ Name, Value string }

// An Error reports a contradictory placement, a malformed device list or an impossible request.
type Error struct {
	Text string // the message
	Hint string // what the user can do, for a line of its own; may be empty
}

func (e *Error) Error() string { return e.Text }

const hintLauncher = "select the launcher with --launcher NAME, or ignore all with " +
	"--launcher none"

func itoa(n int) string { return strconv.Itoa(n) }
