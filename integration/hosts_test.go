package integration

import (
	"strconv"
	"testing"
)

// Without a launcher on two hosts: the same line on both, which names the host of the store.
func TestTwoHostsWithoutLauncher(t *testing.T) {
	c := newCluster(t, 2)
	dir := c.dir("job")
	line := rdzvExec([]string{"--nodes", "2", "--nproc-per-node", "2", "--store", "node1"}, worker("record", dir))
	first, second := c.start(c.on(1, line...)...), c.start(c.on(2, line...)...)
	for _, agent := range []*process{first, second} {
		if code := agent.code(); code != 0 {
			t.Errorf("an agent ended with %d", code)
		}
	}
	for rank, r := range records(t, dir, 4) {
		for name, want := range map[string]string{
			"WORLD_SIZE": "4", "LOCAL_RANK": strconv.Itoa(rank % 2), "LOCAL_WORLD_SIZE": "2", "NODE_RANK": strconv.Itoa(rank / 2),
			"GROUP_WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "eth0",
		} {
			if r.Env[name] != want {
				t.Errorf("rank %d has %s=%q, want %q", rank, name, r.Env[name], want)
			}
		}
		if addr := r.Env["MASTER_ADDR"]; addr != "10.77.0.11" && addr != "10.77.0.12" {
			t.Errorf("rank %d has MASTER_ADDR=%q", rank, addr)
		}
	}
}
