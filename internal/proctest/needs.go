package proctest

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// NeedUnshare skips a test that needs new namespaces, if unshare(1) with these flags cannot create
// them: without CAP_SYS_ADMIN, or as root of a container with Docker's default profile.
func NeedUnshare(t *testing.T, flags ...string) {
	t.Helper()
	if err := Unshare(flags...); err != nil {
		t.Skip(err)
	}
}

// NeedProgram skips a test that runs this program, if it is not installed. make test installs all.
func NeedProgram(t *testing.T, path string) {
	t.Helper()
	if _, err := exec.LookPath(path); err != nil {
		t.Skip(err)
	}
}

// Unshare returns unshare(1)'s own message if it cannot create new namespaces.
func Unshare(flags ...string) error {
	out, err := exec.Command("unshare", append(flags, "true")...).CombinedOutput()
	if err != nil && len(out) > 0 {
		return errors.New(strings.TrimSpace(string(out)))
	}
	return err
}
