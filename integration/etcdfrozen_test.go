package integration

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The leader of the cluster is frozen, and continues: it then revokes leases that have been renewed
// with its successor. The jobs go on, with and without restarts.
func TestFrozenEtcdLeader(t *testing.T) {
	t.Parallel()
	runConcurrently(t, []scenario{
		{"distribution", func(t *testing.T) { testFrozenEtcdLeader(t, distributionEtcd(t)) }},
		{"module", func(t *testing.T) { testFrozenEtcdLeader(t, moduleEtcd.path(t)) }},
	})
}

func testFrozenEtcdLeader(t *testing.T, program string) {
	const peerTimeout, frozen = 5 * time.Second, 15 * time.Second
	e := startEtcd(t, 2, etcdOptions{program: program})
	var jobs []*etcdJob
	for restarts := range 3 {
		jobs = append(jobs, e.startJob(t, fmt.Sprint("restarts", restarts), 3,
			"--max-restarts", strconv.Itoa(restarts), "--peer-timeout", peerTimeout.String()))
	}
	for _, j := range jobs {
		j.awaitWorkers()
	}
	leader := e.leader()
	leader.signal(syscall.SIGSTOP)
	jobs[0].runsFor(frozen)
	leader.signal(syscall.SIGCONT)
	e.awaitAll()
	jobs[0].runsFor(2 * peerTimeout)
	for _, j := range jobs {
		j.end.Close()
		checkCodes(0, j.agents...)
		for _, agent := range j.agents {
			if lines := agent.linesWith("lost"); len(lines) > 0 {
				t.Errorf("job %q: %q", j.name, lines)
			}
		}
	}
	if left := e.keysLeft(); len(left) > 0 {
		t.Errorf("keys are left: %q", left)
	}
}

// leader is the member that leads the cluster.
func (e *etcd) leader() (leader *etcdMember) {
	e.t.Helper()
	e.do(func(ctx context.Context) error {
		for _, m := range e.members {
			status, err := e.admin.Status(ctx, m.endpoint())
			if err != nil {
				return err
			}
			if status.Leader == status.Header.MemberId {
				leader = m
			}
		}
		return nil
	})
	if leader == nil {
		e.t.Fatal("the cluster has no leader")
	}
	return leader
}
