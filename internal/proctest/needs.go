package proctest

import (
	"errors"
	"os"
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

// AsRoot is a command line that runs this one as root, with sudo for another user. If this user may
// not use sudo, or needs a password for it, the test is skipped.
func AsRoot(t *testing.T, argv ...string) []string {
	t.Helper()
	if os.Geteuid() == 0 {
		return argv
	}
	if exec.Command("sudo", "-n", "true").Run() != nil {
		t.Skipf("only root can run %q, or a user of sudo without a password", argv)
	}
	return append([]string{"sudo", "-n"}, argv...)
}

// RunAsRoot runs a command AsRoot. If it fails, the test does.
func RunAsRoot(t *testing.T, argv ...string) {
	t.Helper()
	argv = AsRoot(t, argv...)
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
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
