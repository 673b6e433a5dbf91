package openlimit_test // not openlimit, which would then import what is initialised before

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"rdzv/internal/openlimit"
)

const roleEnv = "OPENLIMIT_TEST_PRINT"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) != "" {
		os.Stdout.WriteString(strconv.FormatUint(openlimit.Soft(), 10))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Package syscall has raised the soft limit before main, and Soft is the one before.
func TestSoft(t *testing.T) {
	cmd := exec.Command("sh", "-c", "ulimit -Sn 123; exec "+os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=1")
	out, err := cmd.Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != "123" {
		t.Errorf("the soft limit is %q, %v, want 123", got, err)
	}
}
