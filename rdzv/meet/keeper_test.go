package meet

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	// Heavy ones, which the keeper must not wait for.
	_ "encoding/json"
	_ "net/http"

	"rdzv/rdzv/meet/internal/keeper"
)

// The keeper runs before the packages that everything else is built upon are initialised.
func TestKeeperIsBeforeAllOthers(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var trace bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: []string{keeper.Name, "0"}, Env: []string{"GODEBUG=inittrace=1"}, Stderr: &trace}
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("it found process 0: %v", err)
	}
	if !strings.Contains(trace.String(), "init os ") {
		t.Errorf("the trace is %q", &trace)
	}
	for _, heavy := range []string{"reflect", "fmt", "encoding/json", "net", "net/http", "testing"} {
		if strings.Contains(trace.String(), "init "+heavy+" ") {
			t.Errorf("package %s came before it", heavy)
		}
	}
}
