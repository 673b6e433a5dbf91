package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The same line on two nodes, here two agents of one machine: they meet at --store, which one of them hosts, with a
// token that neither had before, and agree who is who.
func TestTwoAgentsWithoutLauncher(t *testing.T) {
	p := newPlace(t)
	dir := p.dir("job")
	line := rdzvExec([]string{"--nodes", "2", "--nproc-per-node", "2", "--store", freeAddress(t)}, worker("record", dir))
	for _, agent := range []*process{p.start(line...), p.start(line...)} {
		if code := agent.code(); code != 0 {
			t.Errorf("an agent ended with %d", code)
		}
	}
	parents := map[string]int{}
	for rank, r := range records(t, dir, 4) {
		for name, want := range map[string]string{
			"WORLD_SIZE": "4", "LOCAL_RANK": strconv.Itoa(rank % 2), "LOCAL_WORLD_SIZE": "2",
			"NODE_RANK": strconv.Itoa(rank / 2), "GROUP_RANK": strconv.Itoa(rank / 2), "GROUP_WORLD_SIZE": "2",
		} {
			if r.Env[name] != want {
				t.Errorf("rank %d has %s=%q, want %q", rank, name, r.Env[name], want)
			}
		}
		parents[r.Env["MASTER_ADDR"]+":"+r.Env["MASTER_PORT"]]++
	}
	if len(parents) != 1 {
		t.Errorf("the ranks were told different masters: %v", parents)
	}
	checkToken(t, filepath.Join(p.root, "home/.config/rdzv"))
}

func checkToken(t *testing.T, dir string) {
	t.Helper()
	for path, want := range map[string]os.FileMode{dir: os.ModeDir | 0o700, filepath.Join(dir, "token"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
}

// A failure on one node stops the other, and both agents end with its code.
func TestFailureOnTheOtherAgent(t *testing.T) {
	p := newPlace(t)
	dir := p.dir("job")
	line := rdzvExec([]string{"--nodes", "2", "--nproc-per-node", "2", "--store", freeAddress(t)}, worker("exit", dir, "3", "9"))
	for _, agent := range []*process{p.start(line...), p.start(line...)} {
		if code := agent.code(); code != 9 {
			t.Errorf("an agent ended with %d, want 9", code)
		}
		if len(agent.linesWith("rdzv:", "rank 3")) == 0 {
			t.Error("an agent did not say that it was rank 3")
		}
	}
}

// rdzv exec -- prog needs nothing and nobody.
func TestSingleWorker(t *testing.T) {
	p := newPlace(t)
	dir := p.dir("job")
	job := p.start(rdzvExec(nil, worker("record", dir))...)
	if code := job.code(); code != 0 {
		t.Errorf("rdzv ended with %d", code)
	}
	checkIdentity(t, records(t, dir, 1))
}
