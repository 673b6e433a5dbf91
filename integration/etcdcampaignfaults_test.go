package integration

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Agents with certificates, and agents with passwords, which have to log in again all the time.
var (
	certificates = etcdOptions{secure: true}
	passwords    = etcdOptions{secure: true, passwords: true}
	shortLogins  = etcdOptions{secure: true, passwords: true, loginTTL: 2}
)

// etcdFaults are the faults of TestEtcdCampaign.
var etcdFaults = []etcdFault{
	{name: "none", embedded: true},
	{name: "none"},
	{name: "none (TLS, users)", etcdOptions: certificates},
	{name: "none (TLS, passwords)", etcdOptions: passwords},
	{name: "each member killed and restarted in turn", cause: killMembersInTurn},
	{name: "the same (TLS, users)", etcdOptions: certificates, cause: killMembersInTurn},
	{name: "the same (TLS, passwords)", etcdOptions: passwords, cause: killMembersInTurn},
	{name: "the cluster elects another leader every 2 s", cause: moveLeader},
	{name: "the same (TLS, passwords, logins valid for 2 s)", etcdOptions: shortLogins,
		cause: moveLeader},
	{name: "compaction and defragmentation every 2 s", cause: compactAgain},
	{name: "no quorum for 5 s", cause: func(e *etcd, _ *etcdJob) { e.loseQuorum(5 * time.Second) }},
	{name: "no quorum for 2 min, with --store-timeout 3m", storeTimeout: 3 * time.Minute,
		cause: func(e *etcd, _ *etcdJob) { e.loseQuorum(2 * time.Minute) }},
	{name: "a member frozen", cause: func(e *etcd, j *etcdJob) {
		e.members[0].signal(syscall.SIGSTOP)
		j.runsFor(*campaignTime / 5)
	}, repair: func(e *etcd) { e.members[0].signal(syscall.SIGCONT); e.awaitAll() }},
	{name: "a member disconnected", cause: func(e *etcd, j *etcdJob) {
		e.members[0].disconnect()
		j.runsFor(*campaignTime / 5)
	}, repair: func(e *etcd) { e.members[0].reconnect(); e.awaitAll() }},
	{name: "each sync of the members' disks takes 200 ms longer",
		etcdOptions: etcdOptions{syncs: true}, cause: slowDisks},
	{name: "leader of the job killed", code: 123, cause: func(_ *etcd, j *etcdJob) {
		kill(j.membersInStore()[0].PID)
	}},
	{name: "the same after 5 s (TLS, passwords, logins valid for 2 s)", code: 123,
		etcdOptions: shortLogins,
		cause: func(_ *etcd, j *etcdJob) {
			j.runsFor(5 * time.Second)
			kill(j.membersInStore()[0].PID)
		}},
	{name: "leader of the job frozen for twice the peer timeout", code: 123,
		cause: func(e *etcd, j *etcdJob) {
			leader := j.membersInStore()[0]
			thaw := j.freeze(leader)
			e.members[0].process.runsUntil(time.Now().Add(2 * etcdPeerTimeout))
			thaw()
		}},
	{name: "half of the agents disconnected", code: 123, storeTimeout: 10 * time.Second,
		cause: func(e *etcd, _ *etcdJob) {
			e.hosts("cut", strconv.Itoa(e.agentHosts[1]))
		},
		repair: func(e *etcd) { e.hosts("heal", strconv.Itoa(e.agentHosts[1])) }},
	{name: "no quorum for longer than --store-timeout", code: 123,
		storeTimeout: 20 * time.Second,
		cause:        func(e *etcd, _ *etcdJob) { e.members[1].kill(); e.members[2].kill() },
		repair:       func(e *etcd) { e.members[1].start(); e.members[2].start(); e.awaitAll() }},
	{name: "the database is full, and a worker is killed", code: 123,
		etcdOptions: etcdOptions{quota: 16 << 20},
		cause: func(e *etcd, j *etcdJob) {
			e.fill()
			j.killWorker(*campaignAgents - 1)
		},
		repair: (*etcd).makeSpace},
}

// runsFor waits, and fails the test if an agent ends.
func (j *etcdJob) runsFor(d time.Duration) {
	j.t.Helper()
	j.agents[0].runsUntil(time.Now().Add(d))
	j.checkRuns()
}

func killMembersInTurn(e *etcd, j *etcdJob) {
	end := time.Now().Add(*campaignTime)
	for i := 0; time.Now().Before(end); i++ {
		m := e.members[i%len(e.members)]
		m.kill()
		j.runsFor(5 * time.Second)
		m.start()
		j.runsFor(15 * time.Second)
	}
}

func moveLeader(e *etcd, j *etcdJob) {
	for end := time.Now().Add(*campaignTime / 5); time.Now().Before(end); {
		e.moveLeader()
		j.runsFor(2 * time.Second)
	}
}

// moveLeader makes the next member the leader of the cluster.
func (e *etcd) moveLeader() {
	e.t.Helper()
	e.do(func(ctx context.Context) error {
		var ids []uint64
		leader := 0
		for i, m := range e.members {
			status, err := e.admin.Status(ctx, m.endpoint())
			if err != nil {
				return err
			}
			ids = append(ids, status.Header.MemberId)
			if status.Leader == status.Header.MemberId {
				leader = i
			}
		}
		var options []grpc.DialOption
		if e.secure {
			options = rootsLogins
		}
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{e.members[leader].endpoint()}, DialTimeout: waitLimit,
			DialOptions: options, Logger: zap.NewNop(),
		})
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = client.MoveLeader(ctx, ids[(leader+1)%len(ids)])
		return err
	})
}

func compactAgain(e *etcd, j *etcdJob) {
	for end := time.Now().Add(*campaignTime / 5); time.Now().Before(end); {
		e.compact()
		j.runsFor(2 * time.Second)
	}
}

// slowDisks delays each sync of all members until they end.
func slowDisks(e *etcd, j *etcdJob) {
	var tracers []*process
	for _, m := range e.members {
		tracers = append(tracers, e.start("strace", "-f", "-o", "/dev/null",
			"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_enter=200000",
			"-p", strconv.Itoa(m.process.pid())))
	}
	for i, tracer := range tracers {
		tracer.waitFor("attached")
		e.members[i].process.runsUntil(time.Now())
	}
	j.runsFor(*campaignTime / 5)
}

// fill fills the database until it accepts nothing.
func (e *etcd) fill() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 2*waitLimit)
	defer cancel()
	value := strings.Repeat("x", 1<<20)
	for range 100 {
		if _, err := e.admin.Put(ctx, "fill", value); err != nil {
			e.t.Logf("the database is full: %v", err)
			return
		}
	}
	e.t.Fatal("the database does not become full")
}

// makeSpace is what an administrator does with a database that is full.
func (e *etcd) makeSpace() {
	e.t.Helper()
	var revision int64
	e.do(func(ctx context.Context) error {
		found, err := e.admin.Get(ctx, "fill", clientv3.WithCountOnly())
		if err == nil {
			revision = found.Header.Revision
		}
		return err
	})
	e.compactTo(revision)
	e.do(func(ctx context.Context) error {
		_, err := e.admin.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		return err
	})
}
