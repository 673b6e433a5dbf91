package envmap

import (
	"slices"
	"strings"
)

// Shell returns changes as commands for a POSIX shell: eval "$(rdzv env)". It is safe for any content. Names that are
// no names in a shell, or that a shell keeps for itself and would stop at, are left out.
func Shell(set []KV, unset ...string) string {
	var b strings.Builder
	for _, name := range unset {
		if shellName(name) {
			b.WriteString("unset " + name + "\n")
		}
	}
	for _, kv := range set {
		if shellName(kv.Name) && !strings.ContainsRune(kv.Value, 0) {
			b.WriteString("export " + kv.Name + "='" + strings.ReplaceAll(kv.Value, "'", `'\''`) + "'\n")
		}
	}
	return b.String()
}

// shellsOwn are variables that are read-only or of a fixed form in dash, bash, ksh or zsh.
var shellsOwn = []string{"PPID", "UID", "EUID", "GID", "EGID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO", "OPTIND", "LINENO", "HISTCMD", "SRANDOM", "_"}

func shellName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && !slices.Contains(shellsOwn, name)
}
