package proctest

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// insideEnv is the name of the test that Inside runs in new namespaces.
const insideEnv = "PROCTEST_INSIDE"

// Inside reports whether this test runs in new namespaces, which unshare(1) creates with these
// flags. Otherwise it runs the test, which is not a subtest, there in another process, alone, and
// takes over its result.
func Inside(t *testing.T, flags ...string) bool {
	t.Helper()
	if os.Getenv(insideEnv) == t.Name() {
		return true
	}
	NeedUnshare(t, flags...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	only := "-test.run=^" + regexp.QuoteMeta(t.Name()) + "$"
	cmd := exec.CommandContext(t.Context(), "unshare", append(flags, self, only, "-test.v")...)
	cmd.Env = append(os.Environ(), insideEnv+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in new namespaces: %v\n%s", err, out)
	}
	if regexp.MustCompile(`(?m)^ *--- SKIP: `).Match(out) {
		t.Skipf("in new namespaces:\n%s", out)
	}
	return false
}
