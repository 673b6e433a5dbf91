package meet

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	// Packages that the keeper must not wait for.
	_ "encoding/json"
	_ "net/http"

	"rdzv/rdzv/meet/internal/keeper"
)

// The keeper runs before most packages are initialised.
func TestKeeperRunsFirst(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var trace bytes.Buffer
	cmd := &exec.Cmd{
		Path: self, Args: []string{keeper.Name, "0"}, Env: []string{"GODEBUG=inittrace=1"},
		Stderr: &trace,
	}
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("the keeper of process 0 ended with %v, want exit code 1", err)
	}
	if !strings.Contains(trace.String(), "init os ") {
		t.Errorf("the trace is %q", &trace)
	}
	for _, name := range []string{"reflect", "fmt", "encoding/json", "net", "net/http", "testing"} {
		if strings.Contains(trace.String(), "init "+name+" ") {
			t.Errorf("package %s was initialised before the keeper ran", name)
		}
	}
}
