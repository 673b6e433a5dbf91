package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A cluster is a number of hosts of this machine, each with a network, a hostname and an /etc/hosts of its own
// (testbed/hosts). Addresses of two clusters do not meet: they lie in network namespaces.
type cluster struct {
	*place
	script string // testbed/hosts
}

// newCluster brings n hosts up, with options of `hosts up`, for as long as the test lasts. It takes root, or sudo.
func newCluster(t *testing.T, n int, options ...string) *cluster {
	t.Helper()
	c := newPlace(t).cluster()
	c.hosts(append([]string{"up", strconv.Itoa(n)}, options...)...)
	t.Cleanup(func() {
		c.checkNoProcesses() // before those on the hosts are killed
		c.hosts("down")
	})
	return c
}

// cluster is the hosts of the place.
func (p *place) cluster() *cluster { return &cluster{p, filepath.Join(testbed, "hosts")} }

// newSlurm makes a place with one host that Slurm manages.
func newSlurm(t *testing.T) *place {
	t.Helper()
	c := newCluster(t, 1) // whose end ends Slurm
	c.run(c.slurm("up"))
	return c.place
}

// slurm is a command of testbed/slurm about this cluster.
func (c *cluster) slurm(args ...string) []string {
	line := c.line(args...)
	line[len(line)-len(args)-1] = filepath.Join(testbed, "slurm")
	return line
}

// on returns the command that runs argv on a host, 1 being the first.
func (c *cluster) on(host int, argv ...string) []string {
	return append(c.line("on", strconv.Itoa(host)), argv...)
}

// line is a command of testbed/hosts about this cluster. Without root it is sudo's, but for what runs on the hosts.
func (c *cluster) line(args ...string) []string {
	line := append([]string{"env", "HOSTS_DIR=" + filepath.Join(c.root, "hosts"), c.script}, args...)
	if uid := os.Geteuid(); uid != 0 {
		as := fmt.Sprintf("HOSTS_AS=%d:%d", uid, os.Getegid())
		line = slices.Concat([]string{"sudo", "-n", "-E", "env", as, "PATH=" + os.Getenv("PATH")}, line[1:])
	}
	return line
}

// remoteShell makes a command that does what ssh does between real hosts, and returns its path. What it starts is of
// the place p, as it would be if the user's shells set the place's variables.
func (c *cluster) remoteShell(p *place) string {
	path := filepath.Join(p.root, "ssh")
	if _, err := os.Stat(path); err == nil {
		return path // another job is perhaps running it, and a file that is being written cannot be run
	}
	var text strings.Builder
	fmt.Fprint(&text, "#!/bin/sh\nwhile :; do case $1 in -*) shift ;; *) break ;; esac; done\nhost=$1; shift\n")
	fmt.Fprintf(&text, "exec %s \"$host\" 'export", strings.Join(c.line("rsh"), " "))
	for _, entry := range p.env {
		name, value, _ := strings.Cut(entry, "=")
		fmt.Fprintf(&text, ` %s="%s"`, name, value)
	}
	fmt.Fprint(&text, ";' \"$@\"\n")
	if err := os.WriteFile(path, []byte(text.String()), 0o700); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// hosts runs a command of testbed/hosts to its end.
func (c *cluster) hosts(args ...string) {
	c.t.Helper()
	c.run(c.line(args...))
}

func (c *cluster) run(line []string) {
	c.t.Helper()
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		c.t.Fatalf("%q: %v\n%s", line, err, out)
	}
}
