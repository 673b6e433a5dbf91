// Package installed tests the packages of a release as users install them, with pip, dpkg, rpm, tar
// and podman. "make test-release" runs it.
package installed

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var (
	dist = flag.String("dist", "", "the `directory` of the packages")
	root = flag.String("root", "", "the `directory` of the sources")
	qemu = flag.String("qemu", "", "the `path` of qemu-aarch64, if not that of PATH")
)

// Each file of testdata is a testscript script about one kind of package.
func TestPackages(t *testing.T) {
	if *dist == "" || *root == "" {
		t.Fatal("cannot test packages without -dist and -root: run make test-release")
	}
	if *qemu == "" {
		*qemu = emulator(t)
	}
	testscript.Run(t, testscript.Params{Dir: "testdata", Setup: setUp, RequireExplicitExec: true,
		Condition: condition})
}

// emulator is the qemu-user of PATH: Debian 13 has it under the second name too.
func emulator(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"qemu-aarch64-static", "qemu-aarch64"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("cannot find qemu-aarch64-static: apt-get install qemu-user-static")
	return ""
}

// condition evaluates [qemu10]: whether the emulator is of release 10 or later.
func condition(name string) (bool, error) {
	out, err := exec.Command(*qemu, "--version").Output()
	if err != nil || name != "qemu10" {
		return false, fmt.Errorf("cannot evaluate condition %q: %w", name, err)
	}
	var major int
	_, err = fmt.Sscanf(string(out), "qemu-aarch64 version %d.", &major)
	return major >= 10, err
}

// setUp gives a script the names of the packages for this machine, and of those for arm64.
func setUp(env *testscript.Env) error {
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	for name, pattern := range map[string]string{
		"ARCHIVE": "rdzv_*_linux_" + runtime.GOARCH + ".tar.gz", "WHEEL": "rdzv-*_" + machine + ".whl",
		"DEB": "rdzv_*_" + runtime.GOARCH + ".deb", "RPM": "rdzv-*." + machine + ".rpm",
		"IMAGE":       "rdzv_*_oci.tar",
		"SBOM":        "rdzv_*_linux_" + runtime.GOARCH + ".cdx.json",
		"ARM_ARCHIVE": "rdzv_*_linux_arm64.tar.gz", "ARM_WHEEL": "rdzv-*_aarch64.whl",
		"ARM_RPM": "rdzv-*.aarch64.rpm",
	} {
		found, err := filepath.Glob(filepath.Join(*dist, pattern))
		if err != nil || len(found) != 1 {
			env.T().Fatal("not one package ", pattern, ": ", found)
		}
		env.Setenv(name, found[0])
	}
	env.Setenv("ROOT", *root)
	env.Setenv("QEMU", *qemu)
	env.Setenv("SUDO", map[bool]string{true: "env", false: "sudo"}[os.Geteuid() == 0])
	return os.Mkdir(filepath.Join(env.WorkDir, "home"), 0o700)
}
