package early

import (
	"testing"

	"rdzv/envmap"
)

// Without a number that can be trusted get-rank has no answer, although a launcher gives one: the
// platform says that there are several nodes.
func TestNoNumberOfUnclaimedVariables(t *testing.T) {
	env := envmap.Env{
		"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1",
		"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
	}
	for _, n := range Numbers {
		if got, err := n.Of(env, ""); got == envmap.Unknown || err != nil {
			t.Errorf("%s of one task: %d, %v", n.Name, got, err)
		}
	}
	env["SKYPILOT_NODE_RANK"], env["SKYPILOT_NUM_NODES"] = "1", "2"
	for _, n := range Numbers {
		if got, err := n.Of(env, ""); got != envmap.Unknown || err != nil {
			t.Errorf("%s of two nodes: %d, %v; want none", n.Name, got, err)
		}
	}
}
