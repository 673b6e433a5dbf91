package integration

import (
	"strings"
	"testing"
)

// RANK, WORLD_SIZE and MASTER_ADDR as AzureML, Volcano or a user's script set them, for one agent
// per worker or per node. The store is found by the name in MASTER_ADDR alone.
func TestLauncherEnv(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--nomulticast")
	for name, job := range map[string]struct {
		flags  []string
		agents []string // their variables; the second half runs on node2
		want   layout
	}{
		"one per node": {nil, []string{"RANK=0", "RANK=1"}, layout{"node1", "node2"}},
		"one per node, two workers": {
			[]string{"--nproc-per-node", "2"}, []string{"RANK=0 NODE_RANK=0", "RANK=1 NODE_RANK=1"},
			layout{"node1", "node1", "node2", "node2"},
		},
		"one per worker": {
			nil,
			[]string{
				"RANK=0 LOCAL_RANK=0 NODE_RANK=0", "RANK=1 LOCAL_RANK=1 NODE_RANK=0",
				"RANK=2 LOCAL_RANK=0 NODE_RANK=1", "RANK=3 LOCAL_RANK=1 NODE_RANK=1",
			},
			layout{"node1", "node1", "node2", "node2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.newPlace(t)
			line := p.exec(append(job.flags, "--launcher", "env")...)
			size := map[int]string{2: "WORLD_SIZE=2", 4: "WORLD_SIZE=4"}[len(job.agents)]
			var agents []*process
			for i, variables := range job.agents {
				host := 1 + 2*i/len(job.agents)
				env := append(strings.Fields(variables), size, "MASTER_ADDR=node1",
					"MASTER_PORT=29500")
				agents = append(agents, p.startWith(env, c.on(host, line...)...))
			}
			p.check(job.want, agents...)
		})
	}
}
