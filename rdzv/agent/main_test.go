package agent_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdzv/internal/proctest"
)

// With roleEnv set, the test binary is a worker, or a program that embeds an agent.
const roleEnv = "AGENT_TEST_ROLE"

// deadline bounds each test.
const deadline = 20 * time.Second

var roles = map[string]func() int{}

func role(name string, play func() int) string {
	roles[name] = play
	return name
}

func TestMain(m *testing.M) {
	if name := os.Getenv(roleEnv); name != "" {
		os.Exit(roles[name]())
	}
	proctest.CatchIgnored()
	goleak.VerifyTestMain(m)
}

// environ is the environment of a process that plays a role.
func environ(t *testing.T, role string) []string {
	t.Helper()
	dir := t.TempDir()
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, roleEnv + "=" + role, "GORACE=atexit_sleep_ms=0"}
}
