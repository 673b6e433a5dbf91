package integration

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// All nodes of a job are disconnected from rdzv store, and the same command is started on others. No
// process of the earlier run is left when the workers of the next one start.
func TestRunsDoNotOverlap(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5)
	for _, o := range []struct {
		name  string
		flags []string
		later time.Duration // when the command is started again
		line  string
	}{
		{"no other attempt", []string{"--store-timeout", "10s", "--grace", "1s"}, 0, "waiting at most 14s: "},
		{"another attempt", []string{"--max-restarts", "1", "--grace", "20s"}, 4500 * time.Millisecond,
			"waiting at most 8s: "},
	} {
		t.Run(o.name, func(t *testing.T) {
			p := c.newPlace(t)
			store, argument := p.startShared(1)
			run := func(name string, hosts [2]int) (dir string, agents []*process) {
				dir = p.dir(name)
				flags := slices.Concat(argument, o.flags, []string{"--peer-timeout", "3s"})
				agents = p.sharedJob(hosts, "job", flags, self, "saver", dir, "node2")
				return dir, agents
			}
			started := func(dir string) bool {
				_, err0 := os.Stat(filepath.Join(dir, "0", "0"))
				_, err1 := os.Stat(filepath.Join(dir, "0", "1"))
				return err0 == nil && err1 == nil
			}
			earlier, old := run("earlier", [2]int{2, 3})
			if !eventually(waitLimit, func() bool { return started(earlier) }) {
				t.Fatal("the workers have not started")
			}
			c.hosts("cut", "2")
			c.hosts("cut", "3")
			old[0].runsUntil(time.Now().Add(o.later)) // its worker saves a snapshot
			later, next := run("later", [2]int{4, 5})
			if !eventually(waitLimit, func() bool { return started(later) }) {
				t.Errorf("the workers have not started again: %q", next[0].linesWith("rdzv:"))
			}
			for _, a := range next {
				if len(a.linesWith(o.line, `processes of an earlier run of job "job" may still be running`)) != 1 {
					t.Errorf("an agent printed %q, want %q", a.linesWith("rdzv:"), o.line)
				}
			}
			checkCodes(123, old...)
			if err := os.WriteFile(filepath.Join(later, "finish"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			checkCodes(0, next...)
			c.hosts("heal", "2")
			c.hosts("heal", "3")
			before, after := readBeats(t, earlier, 0), readBeats(t, later, 0)
			if len(before) == 0 || len(after) == 0 {
				t.Fatalf("%d and %d beats of two runs", len(before), len(after))
			}
			between := after[0] - before[len(before)-1]
			t.Logf("the next run started %v after the last process of the earlier one had ended", between)
			if between < 0 {
				t.Errorf("processes of two runs ran at once for %v", -between)
			}
			store.signal(syscall.SIGTERM)
			store.checkCode(0)
		})
	}
}
