package integration

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Jobs whose store is a cluster of etcd go on through its faults, and end as they do with the store
// of an agent. make faults has more agents and faults.
func TestEtcdFaults(t *testing.T) {
	t.Parallel()
	users := etcdOptions{secure: true, passwords: true, loginTTL: 2, loginCost: 4}
	runConcurrently(t, []scenario{
		{"distribution", func(t *testing.T) {
			users.program = distributionEtcd(t)
			testEtcdFaults(t, users)
		}},
		{"module", func(t *testing.T) {
			users.program = moduleEtcd.path(t)
			testEtcdFaults(t, users)
		}},
	})
}

// etcdEndings are how the jobs end after the faults: each agent with that code.
var etcdEndings = []struct {
	name string
	code int
	end  func(t *testing.T, j *etcdJob)
}{
	{"done", 0, func(_ *testing.T, j *etcdJob) { j.end.Close() }},
	{"worker", 128 + int(syscall.SIGKILL), func(_ *testing.T, j *etcdJob) { j.killWorker(1) }},
	{"leader", 123, func(t *testing.T, j *etcdJob) {
		leader := j.membersInStore()[0]
		kill(leader.PID)
		j.remove(leader).checkCode(128 + int(syscall.SIGKILL))
		j.checkLost(t, leader)
	}},
	{"frozen", 123, func(t *testing.T, j *etcdJob) {
		leader := j.membersInStore()[0]
		thaw := j.freeze(leader)
		frozen := j.remove(leader)
		checkCodes(123, j.agents...) // each election in the cluster has prolonged its lease
		thaw()
		frozen.checkCode(123)
		j.checkLost(t, leader)
	}},
	{"revoked", 0, func(t *testing.T, j *etcdJob) { // the agent registers again
		members := j.membersInStore()
		last := members[len(members)-1]
		j.e.do(func(ctx context.Context) error {
			_, err := j.e.admin.Revoke(ctx, last.lease)
			return err
		}, rpctypes.ErrLeaseNotFound)
		j.runsFor(etcdPeerTimeout)
		j.end.Close()
	}},
}

// checkLost checks that one of the other agents has said who was lost.
func (j *etcdJob) checkLost(t *testing.T, lost etcdAgent) {
	t.Helper()
	who := fmt.Sprintf("(pid %d on ", lost.PID)
	said := func(agent *process) bool {
		<-agent.done
		return len(agent.linesWith("lost the agent of rank", who)) > 0
	}
	if !slices.ContainsFunc(j.agents, said) {
		t.Errorf("no agent has printed that it has lost the agent %q", who)
	}
}

func testEtcdFaults(t *testing.T, options etcdOptions) {
	e := startEtcd(t, 2, options)
	var jobs []*etcdJob
	for _, ending := range etcdEndings {
		jobs = append(jobs, e.startJob(t, ending.name, 3))
	}
	for _, j := range jobs {
		j.awaitWorkers()
	}
	e.compact()
	e.loseQuorum(5 * time.Second)
	first := e.members[0]
	first.disconnect()
	jobs[0].agents[0].runsUntil(time.Now().Add(2 * etcdPeerTimeout))
	first.reconnect()
	e.awaitAll()
	first.kill()
	first.start()
	e.awaitAll()
	e.moveLeader()
	for _, j := range jobs {
		j.checkRuns()
	}
	var scenarios []scenario
	for i, ending := range etcdEndings {
		j := jobs[i]
		scenarios = append(scenarios, scenario{ending.name, func(t *testing.T) {
			ending.end(t, j)
			checkCodes(ending.code, j.agents...)
			j.removeFiles()
			e.checkWrites(j.name)
		}})
	}
	runConcurrently(t, scenarios)
	if left := e.keysLeft(); len(left) > 0 {
		t.Errorf("keys are left: %q", left)
	}
}

// compact removes the history of the store, and the space that it took.
func (e *etcd) compact() {
	e.t.Helper()
	e.compactTo(e.catchUp())
}

func (e *etcd) compactTo(revision int64) {
	e.t.Helper()
	e.do(func(ctx context.Context) error {
		_, err := e.admin.Compact(ctx, revision, clientv3.WithCompactPhysical())
		return err
	}, rpctypes.ErrCompacted)
	for _, m := range e.members {
		e.do(func(ctx context.Context) error {
			_, err := e.admin.Defragment(ctx, m.endpoint())
			return err
		})
	}
}

// loseQuorum kills two members and restarts them after a time.
func (e *etcd) loseQuorum(d time.Duration) {
	e.t.Helper()
	lost := e.members[1:]
	for _, m := range lost {
		m.kill()
	}
	e.members[0].process.runsUntil(time.Now().Add(d))
	for _, m := range lost {
		m.start()
	}
	e.awaitAll()
}
