package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is rdzv too, when it is called so: the init functions of
// packages early, watchdog and keeper look at what it was called with, as in rdzv
// itself.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rdzv": main})
}

// Each file of testdata is a story of a user, its first word the command it is
// about. Each has a home, a temporary and a runtime directory of its own, and must
// leave nothing in them and no process behind.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		Setup:               setUp,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": await,
			"exits": exits,
			"under": under,
			"lines": lines,
			"port":  port,
			"serve": serve,
		},
		Condition: condition,
	})
}
