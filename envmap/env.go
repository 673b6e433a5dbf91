package envmap

import (
	"slices"
	"strings"
)

// Unknown stands for a number that the launcher does not tell.
const Unknown = -1

// Env is an environment: name to value.
type Env map[string]string

// ParseEnv reads KEY=VALUE entries, as os.Environ gives them. Of several entries of one name the last wins, as it
// does for a child of os/exec. Entries without a name or without "=" are left out.
func ParseEnv(environ []string) Env {
	env := make(Env, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			env[name] = value
		}
	}
	return env
}

// has reports whether name is set to something: a launcher never says anything with an empty value, and
// "RANK= program" is how a shell user takes a variable away.
func (e Env) has(name string) bool { return e[name] != "" }

// first returns the first of names that is set, or "".
func (e Env) first(names ...string) string {
	if i := slices.IndexFunc(names, e.has); i >= 0 {
		return names[i]
	}
	return ""
}

// setOf returns those of names that are set.
func setOf(env Env, names ...string) []string {
	var set []string
	for _, name := range names {
		if env.has(name) {
			set = append(set, name)
		}
	}
	return set
}

// shown returns those of names that are set, as "A=1, B=2".
func (e Env) shown(names ...string) string {
	set := setOf(e, names...)
	for i, name := range set {
		set[i] = name + "=" + e[name]
	}
	return strings.Join(set, ", ")
}
