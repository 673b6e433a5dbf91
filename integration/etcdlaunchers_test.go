package integration

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// With an etcd cluster as the store, jobs of every launcher on two hosts, on which members of the
// cluster run too, begin, restart and end as they do with the store of an agent.
func TestEtcdUnderLaunchers(t *testing.T) {
	t.Parallel()
	e := startEtcd(t, 0, etcdOptions{program: distributionEtcd(t), secure: true})
	e.startSlurm(1, 2)
	flags := slices.Concat(joinSoon, e.flags(), []string{"--export", "GIVEN=x,y"})
	var all []variant
	for _, launcher := range jobLaunchers {
		add := func(of string, test func(t *testing.T)) {
			all = append(all, variant{of, launcher, scenario{launcher + " " + of, test}})
		}
		add("succeeds", func(t *testing.T) {
			j := e.cluster.startJob(t, launcher, 2, flags, worker("record", jobDir))
			j.checkCommands(0)
			want := map[string]string{
				"GIVEN": "x,y", "MASTER_ADDR": "10.77.0.11", "WORLD_SIZE": "4",
			}
			for rank, r := range records(t, j.records(), workersPerJob) {
				r.checkEnv(t, want)
				if _, has := r.Env["RDZV_STORE"]; has {
					t.Errorf("rank %d has RDZV_STORE", rank)
				}
			}
			if lines := j.linesWith("rdzv:"); len(lines) != 1 {
				t.Errorf("rdzv printed %q, want only where the ranks are", lines)
			}
		})
		add("fails", func(t *testing.T) {
			j := e.cluster.startJob(t, launcher, 2, flags, worker("exit", jobDir, "3", "7"))
			j.checkCommands(7)
			j.compareAgentCodes(7)
			if lines := j.linesWith("rdzv: rank 3 of 4 failed first"); len(lines) != 1 {
				t.Errorf("the agents printed %q, want one report on rank 3", j.linesWith("rdzv:"))
			}
		})
		add("restarts", func(t *testing.T) {
			flags := slices.Concat(flags, []string{"--max-restarts", "2", "--grace", "300ms"})
			j := e.cluster.startJob(t, launcher, 2, flags, []string{"sh", "-c", attempts, jobDir, "1"})
			pid, err := strconv.Atoi(j.ranksOf(0)[rand.IntN(workersPerJob)][0])
			if err != nil {
				t.Fatal(err)
			}
			kill(pid)
			j.checkCommands(0)
			j.checkAgentCodes(0)
			j.ranksOf(1)
			j.checkRestartLines(1)
		})
	}
	runConcurrently(t, selected(all))
	if left := e.keysLeft(); len(left) > 0 {
		t.Errorf("keys left: %q", left)
	}
}
