package wrap

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	// Heavy ones, which the watchdog must not wait for.
	_ "encoding/json"
	_ "net/http"

	"rdzv/wrap/internal/watchdog"
)

// TestBeforeAllOthers: the watchdog runs before the packages that everything else is built upon are initialised.
func TestBeforeAllOthers(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var trace bytes.Buffer
	cmd := &exec.Cmd{
		Path:   self,
		Args:   watchdog.Args(os.Getpid(), 0, false),
		Env:    []string{"GODEBUG=inittrace=1"},
		Stderr: &trace, // its stdin is /dev/null: an agent that has gone
	}
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("it did not see the end of the agent: %v", err)
	}
	ran := map[string]bool{}
	for _, line := range strings.Split(trace.String(), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "init" {
			ran[f[1]] = true
		}
	}
	if !ran["os"] || len(ran) > 40 {
		t.Errorf("%d packages came before it", len(ran))
	}
	for _, heavy := range []string{"reflect", "fmt", "encoding/json", "net", "net/http", "testing"} {
		if ran[heavy] {
			t.Errorf("package %s came before it", heavy)
		}
	}
}
