package wrap

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	// Packages whose initialisation takes long.
	_ "encoding/json"
	_ "net/http"

	"rdzv/wrap/internal/watchdog"
)

// TestWatchdogStartsBeforeHeavyPackages: only few packages are initialised before the watchdog
// runs.
func TestWatchdogStartsBeforeHeavyPackages(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var trace bytes.Buffer
	cmd := &exec.Cmd{
		Path:   self,
		Args:   watchdog.Args(os.Getpid(), 0, false),
		Env:    []string{"GODEBUG=inittrace=1"},
		Stderr: &trace, // stdin is /dev/null: end of file, as from an agent that has ended
	}
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("watchdog ended with %v, want exit code 1", err)
	}
	ran := map[string]bool{}
	for _, line := range strings.Split(trace.String(), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "init" {
			ran[f[1]] = true
		}
	}
	if !ran["os"] || len(ran) > 40 {
		t.Errorf("%d packages were initialised before the watchdog (os: %v)", len(ran), ran["os"])
	}
	heavies := []string{"reflect", "fmt", "encoding/json", "net", "net/http", "testing"}
	for _, heavy := range heavies {
		if ran[heavy] {
			t.Errorf("package %s was initialised before the watchdog", heavy)
		}
	}
}
