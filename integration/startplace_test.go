package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A startPlace is what a new user has: two hosts, a home directory with the examples of this
// repository in rdzv/, ssh and scp between the hosts, and no rdzv in the system's PATH.
type startPlace struct {
	*clusterPlace
	homes []string // directories that the hosts have as ~, one for each or one for all
}

const (
	oneHome  = 1 // a file system that all hosts share, as on most Slurm clusters
	ownHomes = 2
)

func newStartPlace(t *testing.T, homes int) *startPlace {
	t.Helper()
	c := newCluster(t, 2)
	if homes == oneHome {
		c.startSlurm(1, 2)
	}
	p := &startPlace{clusterPlace: c.newPlace(t)}
	home := p.dir("you")
	p.homes = []string{home}
	if homes == ownHomes {
		p.homes = []string{p.dir("you1"), p.dir("you2")}
		for i, dir := range p.homes { // the mounts end with the hosts
			c.run(asRootOnHost(c.on(i+1, "mount", "--bind", dir, home)))
		}
	}
	for _, dir := range p.homes {
		p.must(os.Mkdir(filepath.Join(dir, "rdzv"), 0o700))
		p.link("../examples", filepath.Join(dir, "rdzv/examples"))
	}
	// bash has a prompt of its own in a virtual environment, unless the last variable is set.
	p.env = append(p.env, "HOME="+home, "VIRTUAL_ENV_DISABLE_PROMPT=1")
	p.addShells(home)
	return p
}

// newMPIPlace has a token if this Open MPI gives jobs no secret: then the page tells to copy it.
func newMPIPlace(t *testing.T) *startPlace {
	p := newStartPlace(t, ownHomes).withEnvironment()
	for _, home := range p.homes {
		if openMPI5 {
			p.must(os.MkdirAll(filepath.Join(home, ".config/rdzv"), 0o700))
			p.write(filepath.Join(home, ".config/rdzv/token"), oneToken, 0o600)
		}
	}
	return p
}

// addShells adds ssh and scp to PATH. ssh is the test's; scp is the real one, which uses it.
func (p *startPlace) addShells(home string) {
	p.t.Helper()
	bin := p.dir("bin")
	shell := filepath.Join(bin, "ssh")
	p.write(shell, p.shellIn(home), 0o700)
	p.write(filepath.Join(bin, "scp"), "#!/bin/sh\nexec /usr/bin/scp -O -S "+shell+" \"$@\"\n", 0o700)
	p.env = append(p.env, "PATH="+bin+":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"OMPI_MCA_plm_rsh_agent="+shell)
}

// withEnvironment adds ~/venv with torch and rdzv to each home.
func (p *startPlace) withEnvironment() *startPlace {
	p.t.Helper()
	for i := range p.homes {
		p.addEnvironment(i, "--without-pip")
		p.link(*rdzvBin, filepath.Join(p.homes[i], "venv/bin/rdzv"))
	}
	return p
}

// addEnvironment makes ~/venv with the torch of the tests, on a host with that home.
func (p *startPlace) addEnvironment(i int, options ...string) {
	p.t.Helper()
	line := slices.Concat([]string{python, "-m", "venv"}, options, []string{p.dir("you") + "/venv"})
	p.cluster.run(p.cluster.on(i+1, line...))
	origin, err := exec.Command(python, "-c",
		"import importlib.util as u; print(u.find_spec('torch').origin)").Output()
	p.must(err)
	packages, err := filepath.Glob(filepath.Join(p.homes[i], "venv/lib/python3*/site-packages"))
	if err != nil || len(packages) != 1 {
		p.t.Fatalf("no virtual environment: %q, %v", packages, err)
	}
	torch := filepath.Dir(filepath.Dir(strings.TrimSpace(string(origin))))
	p.write(filepath.Join(packages[0], "torch.pth"), torch+"\n", 0o600)
}

// login opens a terminal in the home directory on a host.
func (p *startPlace) login(host int) *terminal {
	p.t.Helper()
	term := p.terminalOn(host)
	term.typeAndWait("cd\n", "cd\r\n", shellPrompt)
	return term
}

func (p *startPlace) link(target, name string) {
	p.t.Helper()
	absolute, err := filepath.Abs(target)
	p.must(err)
	p.must(os.Symlink(absolute, name))
}
