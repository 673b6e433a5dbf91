package integration

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A restartSetting is how jobs of TestChaosOfRestarts are started.
type restartSetting struct {
	name      string
	under     string // this launcher
	withSpare bool   // a fourth agent waits
	etcd      bool   // the store is an etcd cluster
}

// restartHosts is the number of hosts that run the workers of a job.
const restartHosts = 3

var restartSettings = []restartSetting{
	{name: "direct", under: "direct"}, {name: "openmpi", under: "openmpi"},
	{name: "hydra", under: "hydra"}, {name: "slurm", under: "slurm"},
	{name: "spare", under: "direct", withSpare: true},
	{name: "etcd", under: "direct", etcd: true},
	{name: "+spare", under: "direct", etcd: true, withSpare: true},
	{name: "+openmpi", under: "openmpi", etcd: true},
	{name: "+hydra", under: "hydra", etcd: true}, {name: "+slurm", under: "slurm", etcd: true},
}

// restartPeerTimeout is --peer-timeout of these jobs, and its default: in 5 s not every agent renewed
// its lease when a member of etcd was disconnected from a busy machine.
const restartPeerTimeout = 10 * time.Second

// replaces tells whether the job restarts after a fault that loses agents, when there are others in
// their place. The host is that of the fault.
func (s restartSetting) replaces(k restartKind, host int) bool {
	switch {
	case s.under != "direct":
		return false
	case s.etcd, k.name == "link": // without the link of the store's host, the others are lost
		return true
	case k.name == "two agents":
		return host == storeHost // which stays
	default:
		return host != storeHost
	}
}

// A restartCluster is that of one job at a time, because its hosts are disconnected.
type restartCluster struct {
	*cluster
	store *etcd // nil if agents host the stores
}

// startRestartClusters starts as many clusters as jobs may run at once, with stores or without.
func startRestartClusters(t *testing.T, stores bool) chan restartCluster {
	t.Helper()
	var programs []string
	if stores {
		programs = []string{distributionEtcd(t), moduleEtcd.path(t)}
	}
	clusters := make(chan restartCluster, *atOnce)
	for i := range *atOnce {
		var c restartCluster
		if stores {
			program := programs[i%len(programs)]
			c.store = startEtcd(t, 0, etcdOptions{program: program, before: restartHosts + 1})
			c.cluster = c.store.cluster
		} else {
			c.cluster = newCluster(t, restartHosts+1)
		}
		c.startSlurm(1, restartHosts)
		c.startRankServers(restartHosts + 1)
		clusters <- c
	}
	return clusters
}

// flags are those of a job over the store.
func (c restartCluster) flags(job string) []string {
	if c.store == nil {
		return nil
	}
	return append(c.store.flags(), "--job", job)
}

// jobName is the name of a job whose store is an etcd cluster.
func (r *restartJob) jobName() string { return fmt.Sprint("restarts", r.number) }

// startSpare starts the agent of a fourth host with the command of the first.
func (r *restartJob) startSpare() {
	r.t.Helper()
	first := r.commands[0]
	command := first.argv[len(r.cluster.on(1)):]
	r.spare = restartHosts + 1
	r.commands = append(r.commands, r.startWith(first.cmd.Env, r.cluster.on(r.spare, command...)...))
}

// leader is the agent that leads a job whose store is an etcd cluster.
func (r *restartJob) leader() etcdAgent {
	r.t.Helper()
	members := r.cluster.store.membersOf(r.jobName())
	if len(members) == 0 {
		r.t.Fatalf("job %q has no members in the store", r.jobName())
	}
	return members[0]
}

// someMember is a member of the etcd cluster, which may be its leader.
func (r *restartJob) someMember() *etcdMember {
	r.t.Helper()
	store := r.cluster.store
	m := store.members[r.random.IntN(len(store.members))]
	r.t.Logf("%s of %s; it leads: %t", m.name(), store.version(), m.leads())
	return m
}

// leads tells whether the member is the leader of the cluster.
func (m *etcdMember) leads() (leads bool) {
	m.cluster.t.Helper()
	m.cluster.do(func(ctx context.Context) error {
		status, err := m.cluster.admin.Status(ctx, m.endpoint())
		if err == nil {
			leads = status.Leader == status.Header.MemberId
		}
		return err
	})
	return leads
}

// killMember kills a member of the etcd cluster and starts it again when the training has gone on.
func (r *restartJob) killMember() {
	r.t.Helper()
	m := r.someMember()
	m.kill()
	r.awaitProgress()
	m.start()
	r.cluster.store.awaitAll()
	r.awaitProgress()
}

// freezeMember stops a member for longer than leases last, disconnectMember disconnects it as long. In
// old versions of etcd a leader that was frozen revokes all leases when it continues.
func (r *restartJob) freezeMember() {
	r.t.Helper()
	m := r.someMember()
	for m.leads() {
		m = r.someMember()
	}
	m.signal(syscall.SIGSTOP)
	r.goesOnUntil(time.Now().Add(2 * restartPeerTimeout))
	m.signal(syscall.SIGCONT)
	r.cluster.store.awaitAll()
	r.awaitProgress()
}

func (r *restartJob) disconnectMember() {
	r.t.Helper()
	m := r.someMember()
	m.disconnect()
	r.goesOnUntil(time.Now().Add(2 * restartPeerTimeout))
	m.reconnect()
	r.cluster.store.awaitAll()
	r.awaitProgress()
}

// goesOnUntil checks that the training goes on for some time.
func (r *restartJob) goesOnUntil(end time.Time) {
	r.t.Helper()
	for time.Now().Before(end) {
		r.awaitProgress()
	}
}

// checkStore checks that nothing of the job is left in the etcd cluster, and that no key was written
// twice or by an agent that was lost. What agents leave that a launcher kills expires with the lease of
// the job: it kills those that have not exited when another one has exited with another code than 0.
func (r *restartJob) checkStore(code int, last *restartFault) {
	r.t.Helper()
	r.cluster.store.checkWrites(r.jobName())
	launched := r.under != "direct"
	kills := last.kills || code != 0 && launched
	limit := 3 * restartPeerTimeout
	if kills && launched {
		limit = jobLease(restartPeerTimeout, restartPeerTimeout) + restartPeerTimeout
	}
	if left := r.cluster.store.keysLeftAfter(limit); len(left) > 0 {
		r.t.Errorf("keys are left: %s", strings.Join(left, ", "))
	}
	if !kills {
		limit = 0 // each agent has revoked its own
	}
	var leases *clientv3.LeaseLeasesResponse
	if !eventually(limit, func() bool {
		r.cluster.store.do(func(ctx context.Context) (err error) {
			leases, err = r.cluster.store.admin.Leases(ctx)
			return err
		})
		return len(leases.Leases) == 0
	}) {
		r.t.Errorf("%d leases are left", len(leases.Leases))
	}
}
