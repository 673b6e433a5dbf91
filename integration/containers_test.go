package integration

import (
	"os"
	"strings"
	"testing"
)

// Containers with a network of their own, without multicast, a home directory and the processes of
// their host are nodes without a launcher: they need --store and a token. rdzv is process 1.
func TestContainers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--nomulticast")
	container := strings.Fields("unshare --mount --pid --fork --mount-proc")
	if os.Geteuid() != 0 {
		container = append(container, "--map-root-user")
	}
	inside := []string{"env", "-i", markName + "=" + c.mark, "PATH=" + os.Getenv("PATH"),
		"TMPDIR=" + c.dir("tmp"), "RDZV_TOKEN=" + oneToken}
	program := []string{"sh", "-c", `echo "rank $RANK on $(hostname), under $(cat /proc/1/comm)"`}
	line := append(append(container, inside...),
		rdzvExec([]string{"--nodes", "2", "--store", "node1"}, program)...)
	first, second := c.start(c.on(1, line...)...), c.start(c.on(2, line...)...)
	checkCodes(0, first, second)
	first.waitFor("rank 0 on node1, under rdzv")
	second.waitFor("rank 1 on node2, under rdzv")
}
