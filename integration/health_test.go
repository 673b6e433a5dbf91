package integration

import (
	"strings"
	"testing"
)

// A node where --health-cmd fails is replaced by a spare, and without one the job ends with the
// reason on every node.
func TestHealthCommand(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	const command = `[ $(hostname) != node2 ] || { echo GPU 3 is lost; exit 9; }`
	const reason = `node2 (rank 1) cannot take part: health command failed: exit status 9: "GPU 3 is lost"`
	program := []string{"sh", "-c", "echo rank $RANK of $WORLD_SIZE, attempt $RDZV_ATTEMPT"}
	for _, spares := range []string{"0", "1"} {
		flags := []string{"--nodes", "2", "--spares", spares, "--store", "node1", "--job", "spares-" + spares,
			"--health-cmd", command, "--join-timeout", "60s"}
		p := newPlace(t)
		var agents []*process
		for host := 1; host <= 2+strings.Index("01", spares); host++ {
			agents = append(agents, p.start(c.on(host, rdzvExec(flags, program)...)...))
		}
		want := map[string][]int{"0": {123, 123}, "1": {0, 123, 0}}[spares]
		for i, agent := range agents {
			agent.checkCode(want[i])
		}
		for i, agent := range agents[:2] {
			if lines := agent.linesWith(reason); len(lines) == 0 {
				t.Errorf("spares %s: node%d does not say %q", spares, i+1, reason)
			}
		}
		if spares == "1" && len(agents[2].linesWith("rank 1 of 2, attempt 1")) != 1 {
			t.Error("node3 does not run rank 1")
		}
	}
}
