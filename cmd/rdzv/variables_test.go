package main

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
)

// A flag can be given in the environment if the help of its command shows the variable, and only
// then. The overview says so.
func TestVariablesOfFlags(t *testing.T) {
	if strings.Contains(overview, "Every flag can be given") {
		t.Error("the overview says that every flag can be given in the environment")
	}
	values := map[string]string{ // of types and flags
		"bool": "true", "int": "3", "nodes": "3", "duration": "3s", "capture": "never", "ports": "3-4",
		"as": "openmpi", "no-restart-on": "3",
	}
	for _, c := range allCommands() {
		for _, r := range c.rows() {
			f := flags.Define(flags.New(c.Name()), c.groups)
			flag := f.Lookup(r.Name())
			value := cmp.Or(values[flag.Value.Type()], values[flag.Name], "text")
			if _, err := flags.Parse(f, nil, envmap.Env{flags.Variable(r.Name()): value}); err != nil {
				t.Errorf("rdzv %s with %s=%s: %v", c.Name(), flags.Variable(r.Name()), value, err)
			}
			shown := strings.Contains(c.help()+"\n", " "+flags.Variable(r.Name())+"\n")
			for _, g := range c.groups {
				shown = shown || g.Brief && slices.ContainsFunc(g.Rows, func(other flags.Row) bool {
					return other.Name() == r.Name() // the help of exec shows it
				})
			}
			if flag.Changed != shown {
				t.Errorf("rdzv %s --%s: taken from %s: %t, shown in the help: %t", c.Name(), r.Name(),
					flags.Variable(r.Name()), flag.Changed, shown)
			}
		}
	}
}
