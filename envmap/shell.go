package envmap

import (
	"slices"
	"strings"
)

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
