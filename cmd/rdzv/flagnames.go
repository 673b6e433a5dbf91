package main

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
)

// otherFlags are the flags of those fields of an agent's configuration whose names differ. They are
// a function because each start of an agent or a watchdog would make the map.
func otherFlags() map[string]string {
	return map[string]string{
		"AsOpenMPI": "--as openmpi", "Dir": "--chdir", "Etcd": "--store", "Join": "RDZV_JOIN",
		"MinNodes": "--nodes MIN:MAX", "Networks": "--net", "NoCapture": `--capture "never"`,
		"PortHigh": "--port-range", "PortLow": "--port-range", "ProcsPerNode": "--nproc-per-node",
		"Restarts.Max": "--max-restarts",
	}
}

// fieldName is the name of a field of an agent's configuration in one of its messages.
const fieldName = `\b[A-Z][a-z]+(\.?[A-Z][A-Za-z]*)*`

// flagOf is the flag that sets a field of an agent's configuration: --join-timeout for JoinTimeout.
func flagOf(field string) string {
	var b strings.Builder
	for _, r := range field {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return cmp.Or(otherFlags()[field], "-"+b.String())
}

// withFlags is a message about a configuration with the flags in place of its fields.
func withFlags(message string) string {
	return regexp.MustCompile(fieldName).ReplaceAllStringFunc(message, flagOf)
}
