package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Two agents on one machine, each with its own --node-rank: they find each other at the address of
// --store, which one of them hosts, with a token that is made for them, and share the node.
func TestTwoAgentsWithoutLauncher(t *testing.T) {
	p := newPlace(t)
	dir := p.dir("job")
	flags := []string{"--nodes", "2", "--nproc-per-node", "2", "--store", freeAddress(t)}
	checkCodes(0, p.startOnOneHost(flags, worker("record", dir))...)
	masters := map[string]bool{}
	for rank, r := range records(t, dir, 4) {
		r.checkEnv(t, map[string]string{
			"WORLD_SIZE": "4", "LOCAL_RANK": strconv.Itoa(rank), "LOCAL_WORLD_SIZE": "4",
			"NODE_RANK": "0", "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1",
		})
		masters[r.Env["MASTER_ADDR"]+":"+r.Env["MASTER_PORT"]] = true
	}
	if len(masters) != 1 {
		t.Errorf("the ranks have the masters %v, want the same for all", masters)
	}
	checkToken(t, filepath.Join(p.root, "home/.config/rdzv"))
}

// Agents of one host that have different directories for temporary files meet too: one hosts the
// store, also if the job would start with one of them.
func TestDifferentTemporaryDirectories(t *testing.T) {
	for _, nodes := range []string{"2", "1:2"} {
		t.Run(nodes, func(t *testing.T) {
			p := newPlace(t)
			dir := p.dir("job")
			flags := []string{"--nodes", nodes, "--store", "localhost", "--join-timeout", "10s"}
			var agents []*process
			for rank, line := range onOneHost(2, flags, worker("record", dir)) {
				own := "TMPDIR=" + p.dir("tmp"+strconv.Itoa(rank))
				agents = append(agents, p.startWith([]string{own}, line...))
			}
			checkCodes(0, agents...)
			for _, r := range records(t, dir, 2) {
				r.checkEnv(t, map[string]string{"WORLD_SIZE": "2"})
			}
		})
	}
}

// startOnOneHost starts two agents of one job without a launcher, with the node ranks 0 and 1.
func (p *place) startOnOneHost(flags, program []string) []*process {
	var agents []*process
	for _, line := range onOneHost(2, flags, program) {
		agents = append(agents, p.start(line...))
	}
	return agents
}

// onOneHost are the command lines of n agents without a launcher on one host.
func onOneHost(n int, flags, program []string) (lines [][]string) {
	for rank := range n {
		own := append(slices.Clone(flags), "--node-rank", strconv.Itoa(rank))
		lines = append(lines, rdzvExec(own, program))
	}
	return lines
}

// twoByTwo is the environment of a rank of a job with 2 nodes of 2 workers.
func twoByTwo(rank int) map[string]string {
	local, node := strconv.Itoa(rank%2), strconv.Itoa(rank/2)
	return map[string]string{
		"WORLD_SIZE": "4", "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": "2",
		"NODE_RANK": node, "GROUP_RANK": node, "GROUP_WORLD_SIZE": "2",
	}
}

// checkToken checks the modes of the directory of the token and of the token.
func checkToken(t *testing.T, dir string) {
	t.Helper()
	for path, want := range map[string]os.FileMode{
		dir: os.ModeDir | 0o700, filepath.Join(dir, "token"): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
}

// The same on two hosts; --store is the name of one of them.
func TestTwoHostsWithoutLauncher(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	dir := c.dir("job")
	flags := []string{"--nodes", "2", "--nproc-per-node", "2", "--store", "node1"}
	line := rdzvExec(flags, worker("record", dir))
	checkCodes(0, c.start(c.on(1, line...)...), c.start(c.on(2, line...)...))
	for rank, r := range records(t, dir, 4) {
		r.checkEnv(t, twoByTwo(rank))
		r.checkEnv(t, map[string]string{"GLOO_SOCKET_IFNAME": "eth0"})
		if addr := r.Env["MASTER_ADDR"]; addr != "10.77.0.11" && addr != "10.77.0.12" {
			t.Errorf("rank %d has MASTER_ADDR=%q, want the address of a host", rank, addr)
		}
	}
}

// A failure on one node stops the workers of the other, and both agents exit with its code.
func TestFailureOnTheOtherAgent(t *testing.T) {
	p := newPlace(t)
	flags := []string{"--nodes", "2", "--nproc-per-node", "2", "--store", freeAddress(t)}
	for _, agent := range p.startOnOneHost(flags, worker("exit", p.dir("job"), "3", "9")) {
		agent.checkCode(9)
		if len(agent.linesWith("rdzv:", "rank 3")) == 0 {
			t.Error("an agent did not name rank 3, which failed")
		}
	}
}

// A single worker needs no flags.
func TestSingleWorker(t *testing.T) {
	p := newPlace(t)
	dir := p.dir("job")
	p.start(rdzvExec(nil, worker("record", dir))...).checkCode(0)
	checkEnvironments(t, records(t, dir, 1))
}
