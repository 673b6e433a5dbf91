package integration

import (
	"flag"
	"os/exec"
	"path/filepath"
	"testing"
)

var distDir = flag.String("dist", "", "the `directory` of a release, whose packages the page about "+
	"the installation installs; without it the rdzv to test is packed")

// newInstallPlace has what make install needs in ~/rdzv, the packages of a release in the home of
// node1, and on both nodes an environment with torch in ~/venv.
func newInstallPlace(t *testing.T) *startPlace {
	t.Helper()
	p := newStartPlace(t, ownHomes)
	// pip needs a network to check its version; make installs the rdzv to test instead of building one.
	p.env = append(p.env, "PIP_DISABLE_PIP_VERSION_CHECK=1", "MAKEFLAGS=s -- RDZV="+*rdzvBin)
	for _, name := range []string{"Makefile", "scripts"} {
		p.link(filepath.Join("..", name), filepath.Join(p.homes[0], "rdzv", name))
	}
	p.addEnvironment(0)
	venv := filepath.Join(p.homes[0], "venv")
	if out, err := exec.Command("cp", "-a", venv, p.homes[1]).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, pattern := range []string{"rdzv-*.whl", "rdzv_*.tar.gz"} {
		files, err := filepath.Glob(filepath.Join(p.packages(), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no package %s: %v", pattern, err)
		}
		for _, file := range files {
			p.link(file, filepath.Join(p.homes[0], filepath.Base(file)))
		}
	}
	return p
}

// packages is the directory of the packages. The command that makes releases packs the rdzv to test,
// which takes seconds; a release takes minutes.
func (p *startPlace) packages() string {
	p.t.Helper()
	if *distDir != "" {
		return *distDir
	}
	root, err := filepath.Abs("..")
	p.must(err)
	dist := p.dir("dist")
	pack := exec.Command("go", "run", "-C", filepath.Join(root, "tools"), "./release", "-source", root,
		"-dist", dist, "-program", *rdzvBin, "-version", "1.0.0", "-commit", "none", "-epoch", "1")
	if out, err := pack.CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	return dist
}
