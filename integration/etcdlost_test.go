package integration

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// With an etcd cluster on the nodes of the jobs, any agent can be replaced: also that of rank 0,
// which leads the job, and its node with a member of the cluster.
func TestLostAgentInEtcd(t *testing.T) {
	t.Parallel()
	e := startEtcd(t, 1, etcdOptions{program: distributionEtcd(t)})
	all, moved := []string{"node1", "node2", "node3"}, []string{"node4", "node2", "node3"}
	three := slices.Concat(e.flags(), []string{"--nodes", "3", "--peer-timeout", "5s"})
	spare := append(three, "--spares", "1")
	const lost = "lost the agent of ranks 0-1 "
	const takesOver = "node4 takes over ranks 0-1 of node1 (restart 1 of 3)"
	// startJob has the agent of host 1 lead the job and run rank 0.
	startJob := func(t *testing.T, n int, flags []string) (j *replacedJob, workers []int) {
		j = e.replacedJob(t, 0, flags...)
		for host := 1; host <= n; host++ {
			j.startAgent(host, "--node-rank", strconv.Itoa(host-1))
			leads := func() bool { return len(e.membersOf(filepath.Base(j.root))) > 0 }
			if !eventually(waitLimit, leads) {
				t.Fatal("the first agent has not joined")
			}
		}
		return j, j.ranks(0, all...)
	}
	var scenarios []scenario
	for _, s := range []struct {
		name  string
		flags []string
		n     int
		again int // the host on which an agent is started; 0 for none
		how   syscall.Signal
		code  int // of the agent of rank 0
		line  string
	}{
		{"spare", spare, 4, 0, syscall.SIGKILL, 128 + 9, lost},
		{"elsewhere", three, 3, 4, syscall.SIGKILL, 128 + 9, lost},
		{"leaves", spare, 4, 0, syscall.SIGTERM, 128 + 15,
			"node1 leaves the job: received SIGTERM; restarting all workers (restart 1 of 3)"},
	} {
		scenarios = append(scenarios, scenario{s.name, func(t *testing.T) {
			j, workers := startJob(t, s.n, s.flags)
			if err := syscall.Kill(agentAbove(workers[0]), s.how); err != nil {
				t.Fatal(err)
			}
			j.agents[1].checkCode(s.code)
			delete(j.agents, 1)
			if s.again != 0 {
				j.startAgent(s.again, "--node-rank", "0")
			}
			j.ranks(1, moved...)
			j.agents[1] = j.agents[2]
			j.end(s.line, takesOver)
			if lines := j.agents[2].linesWith("lost the agent"); s.line != lost && len(lines) > 0 {
				t.Errorf("an agent that leaves is reported as lost: %q", lines)
			}
		}})
	}
	scenarios = append(scenarios, scenario{"variable number of nodes", func(t *testing.T) {
		e.replacedJob(t, 0, slices.Concat(e.flags(), []string{
			"--nodes", "2:3", "--last-call", "1s", "--peer-timeout", "5s",
		})...).loseLeader(4)
	}})
	cut, cutWorkers := startJob(t, 4, append(spare, "--peer-timeout", "10s"))
	runConcurrently(t, scenarios)
	t.Run("node", func(t *testing.T) {
		j := cut
		e.hosts("cut", "1")
		disconnected := time.Now()
		j.ranks(1, moved...)
		for _, pid := range cutWorkers {
			if commandLine(pid)[0] == "sleep" {
				t.Errorf("worker %d of attempt 0 is alive in attempt 1", pid)
			}
		}
		t.Logf("a spare runs rank 0 %v after its node was disconnected", time.Since(disconnected))
		j.agents[1].checkCode(123)
		j.agents[1] = j.agents[2]
		j.end(lost, takesOver)
		e.hosts("heal", "1")
	})
	if left := e.keysLeft(); len(left) > 0 {
		t.Errorf("keys left: %q", left)
	}
	leases := 0
	if !eventually(waitLimit, func() bool { leases = e.leases(); return leases == 0 }) {
		t.Errorf("%d leases left", leases)
	}
}

func (e *etcd) leases() (n int) {
	e.t.Helper()
	e.do(func(ctx context.Context) error {
		found, err := e.admin.Leases(ctx)
		if err == nil {
			n = len(found.Leases)
		}
		return err
	})
	return n
}
