package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
	script, err := filepath.Abs("testbed/hosts")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{newPlace(t), script}
	c.hosts(append([]string{"up", strconv.Itoa(n)}, options...)...)
	t.Cleanup(func() { c.hosts("down") }) // before the place is left
	return c
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

// hosts runs a command of testbed/hosts to its end.
func (c *cluster) hosts(args ...string) {
	c.t.Helper()
	line := c.line(args...)
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		c.t.Fatalf("%q: %v\n%s", line, err, out)
	}
}
