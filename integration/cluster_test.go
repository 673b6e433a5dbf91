package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A cluster consists of hosts on this machine, each with its own network, hostname and /etc/hosts
// (testbed/hosts). Clusters have the same addresses, in different network namespaces.
type cluster struct {
	*place

	// jobEnv is added to the environment of the jobs that startJob starts.
	jobEnv []string
}

// newCluster starts n hosts, with options of `hosts up`, until the test ends. It needs root or
// sudo.
func newCluster(t *testing.T, n int, options ...string) *cluster {
	t.Helper()
	c := newPlace(t).ownCluster()
	c.hosts(append([]string{"up", strconv.Itoa(n)}, options...)...)
	t.Cleanup(func() {
		c.checkNoProcesses() // before `hosts down` kills those on the hosts
		c.hosts("down")
	})
	return c
}

// ownCluster is the cluster whose hosts are in the place itself.
func (p *place) ownCluster() *cluster {
	return &cluster{place: p}
}

// startSlurm starts Slurm on hosts first to last, with its controller on host 1. Slurm ends with
// the hosts.
func (c *cluster) startSlurm(first, last int) {
	c.t.Helper()
	c.run(c.slurm("up", strconv.Itoa(first), strconv.Itoa(last)))
}

// newSlurm makes a place with one host that Slurm manages.
func newSlurm(t *testing.T) *place {
	t.Helper()
	c := newCluster(t, 1)
	c.startSlurm(1, 1)
	return c.place
}

// on returns the command line that runs argv on a host; the first host is 1.
func (c *cluster) on(host int, argv ...string) []string {
	return append(c.hostsCommand("on", strconv.Itoa(host)), argv...)
}

// hostsCommand is a command line of testbed/hosts, slurm one of testbed/slurm, for this cluster.
func (c *cluster) hostsCommand(args ...string) []string { return c.command("hosts", args...) }
func (c *cluster) slurm(args ...string) []string        { return c.command("slurm", args...) }

// command is a command line of a script of the testbed. If this user is not root, it runs with
// sudo, except for the commands that it runs on the hosts.
func (c *cluster) command(script string, args ...string) []string {
	dir := "HOSTS_DIR=" + filepath.Join(c.root, "hosts")
	return slices.Concat(asRootWithEnv(), []string{dir, filepath.Join(testbed, script)}, args)
}

// asRootWithEnv is the beginning of a command line that is continued with variables and a command.
func asRootWithEnv() []string {
	if uid := os.Geteuid(); uid != 0 {
		line := []string{"sudo", "-n", "-E", "env", fmt.Sprintf("HOSTS_AS=%d:%d", uid, os.Getegid())}
		if u, err := user.Current(); err == nil { // sudo sets USER=root, which podman follows
			line = append(line, "USER="+u.Username, "LOGNAME="+u.Username)
		}
		return append(line, "PATH="+os.Getenv("PATH"))
	}
	return []string{"env"}
}

// asRootOnHost lets root run what a command line of the testbed runs on a host, not this user.
func asRootOnHost(line []string) []string {
	return slices.DeleteFunc(line, func(w string) bool { return strings.HasPrefix(w, "HOSTS_AS=") })
}

// checkHosts fails if this machine cannot have clusters, as in a container without privileges.
func checkHosts() error {
	line := append(asRootWithEnv(), filepath.Join(testbed, "hosts"), "check")
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot make hosts for the tests: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// remoteShell makes a program that does what ssh does between real hosts, and returns its path. It
// runs commands with the environment of the place p, as if the user's shells set its variables.
func (c *cluster) remoteShell(p *place) string {
	path := filepath.Join(p.root, "ssh")
	if _, err := os.Stat(path); err == nil {
		return path // another job may run it, and a file that is open for writing cannot be executed
	}
	var text strings.Builder
	fmt.Fprintln(&text, `#!/bin/sh
while :; do case $1 in -*) shift ;; *) break ;; esac; done
host=$1; shift`)
	fmt.Fprintf(&text, "exec %s \"$host\" 'export", quoted(c.hostsCommand("rsh")))
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

// hosts runs testbed/hosts.
func (c *cluster) hosts(args ...string) {
	c.t.Helper()
	c.run(c.hostsCommand(args...))
}

func (c *cluster) run(line []string) {
	c.t.Helper()
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		c.t.Fatalf("%q: %v\n%s", line, err, out)
	}
}
