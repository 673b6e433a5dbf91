package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rdzv/envmap"
)

// workerVariables are those beginning with RDZV_ that exec and env set for workers.
var workerVariables = []string{"RDZV_RUN_ID", "RDZV_ATTEMPT", "RDZV_DETECTED", "RDZV_DEVICE_INDEX"}

// unknownVariables is a line about each variable that begins with RDZV_ and means nothing. It does
// not have the value, which may be a token.
func unknownVariables(env envmap.Env) (lines []string) {
	const prefix = "RDZV_"
	known := []string{"TOKEN", "JOIN"} // without the prefix, which would make all names similar
	for _, c := range commands() {
		for _, g := range c.flags {
			for _, r := range g.rows {
				if !g.noEnv {
					known = append(known, strings.TrimPrefix(variable(r.name()), prefix))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		word, ours := strings.CutPrefix(name, prefix)
		if !ours || env[name] == "" {
			continue
		}
		if slices.Contains(known, word) || slices.Contains(workerVariables, name) {
			continue
		}
		line := fmt.Sprintf("ignoring %s: rdzv has no such variable", name)
		if near := nearest(word, known); near != "" {
			line += fmt.Sprintf(": did you mean %s?", prefix+near)
		}
		lines = append(lines, line)
	}
	return lines
}
