package proctest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	// Packages whose initialisation takes long, for CheckRunsFirst.
	_ "encoding/json"
	_ "net/http"
)

// CheckRunsFirst starts this test binary with these arguments, including argv[0], which make it a
// helper process that cannot do its work and exits with 1. It fails the test unless that happens
// before most packages are initialised.
func CheckRunsFirst(t *testing.T, args ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var trace bytes.Buffer
	cmd := &exec.Cmd{
		Path: self, Args: args, Env: []string{"GODEBUG=inittrace=1"}, Stderr: &trace,
	}
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("%q ended with %v, want exit code 1", args, err)
	}
	ran := map[string]bool{}
	for line := range strings.Lines(trace.String()) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "init" {
			ran[f[1]] = true
		}
	}
	if !ran["os"] || len(ran) > 40 {
		t.Errorf("%d packages were initialised before %s (os: %v)", len(ran), args[0], ran["os"])
	}
	for _, name := range []string{"reflect", "fmt", "encoding/json", "net", "net/http", "testing"} {
		if ran[name] {
			t.Errorf("package %s was initialised before %s", name, args[0])
		}
	}
}
