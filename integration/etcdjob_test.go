package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/internal/procfs"
)

// etcdPeerTimeout is that of all jobs of these tests, the shortest that there is.
const etcdPeerTimeout = 3 * time.Second

// An etcdJob is a job of agents with one worker each. Its store is an etcd cluster, or one of the
// agents hosts it.
type etcdJob struct {
	*place
	e      *etcd
	name   string
	dir    string // of the workers, see pipeWorker
	agents []*process
	end    *os.File // end of a named pipe; the workers succeed when it is closed
}

// startJob starts n agents on the hosts for agents, in turn; see awaitWorkers.
func (e *etcd) startJob(t *testing.T, name string, n int, flags ...string) *etcdJob {
	t.Helper()
	return e.startAgents(t, name, n, append(e.flags(), flags...))
}

// startAgents does so with the flags that determine the store.
func (e *etcd) startAgents(t *testing.T, name string, n int, flags []string) *etcdJob {
	t.Helper()
	p := newPlace(t)
	j := &etcdJob{place: p, e: e, name: name, dir: p.dir("workers")}
	pipe := filepath.Join(j.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if j.end, err = os.OpenFile(pipe, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.end.Close() })
	flags = append([]string{"--job", name, "--nodes", strconv.Itoa(n), "--join-timeout", "2m",
		"--peer-timeout", etcdPeerTimeout.String()}, flags...)
	for rank, line := range onOneHost(n, flags, []string{"/bin/sh", "-c", pipeWorker, j.dir}) {
		host := e.agentHosts[rank%len(e.agentHosts)]
		j.agents = append(j.agents, j.startWith(e.env(), e.on(host, line...)...))
	}
	return j
}

// awaitWorkers waits until all workers run.
func (j *etcdJob) awaitWorkers() {
	j.t.Helper()
	if !eventually(2*waitLimit, func() bool { return j.running() == len(j.agents) }) {
		j.t.Fatalf("%d of %d workers of job %q have started", j.running(), len(j.agents), j.name)
	}
}

// running is the number of workers that have started.
func (j *etcdJob) running() (n int) {
	files, _ := os.ReadDir(j.dir)
	for _, file := range files {
		if _, err := strconv.Atoi(file.Name()); err == nil {
			n++
		}
	}
	return n
}

// killWorker makes the worker of a rank fail.
func (j *etcdJob) killWorker(rank int) {
	kill(numberIn(filepath.Join(j.dir, strconv.Itoa(rank)), ""))
}

// etcdAgent is a member of a job, as it is in the store.
type etcdAgent struct {
	ID    string `json:"id"`
	PID   int    `json:"pid"`
	lease clientv3.LeaseID
}

// membersInStore are the members of the job in the order in which they have joined; the first leads.
func (j *etcdJob) membersInStore() (all []etcdAgent) {
	j.t.Helper()
	if all = j.e.membersOf(j.name); len(all) == 0 {
		j.t.Fatalf("job %q has no members in the store", j.name)
	}
	return all
}

// membersOf are the members of a job, in the same order.
func (e *etcd) membersOf(job string) (all []etcdAgent) {
	e.t.Helper()
	byAge := clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)
	for _, kv := range e.get(byAge) {
		match, _ := filepath.Match(jobPrefix+"v1/"+job+"/run/*/agent/*", string(kv.Key))
		if !match {
			continue
		}
		value := struct{ Value etcdAgent }{}
		if err := json.Unmarshal(kv.Value, &value); err != nil {
			e.t.Fatal(err)
		}
		value.Value.lease = clientv3.LeaseID(kv.Lease)
		all = append(all, value.Value)
	}
	return all
}

// remove removes an agent from those of the job.
func (j *etcdJob) remove(a etcdAgent) *process {
	j.t.Helper()
	i := slices.IndexFunc(j.agents, func(p *process) bool { return p.pid() == a.PID })
	if i < 0 {
		j.t.Fatalf("process %d is no agent of job %q", a.PID, j.name)
	}
	removed := j.agents[i]
	j.agents = slices.Delete(j.agents, i, i+1)
	return removed
}

// freeze stops an agent with its runner, as the whole host of a
// frozen virtual machine; thaw continues them.
func (p *place) freeze(a etcdAgent) (thaw func()) {
	pids := []int{a.PID}
	for _, pid := range p.rdzvProcesses() {
		isAgent := func(p procfs.Process) bool { return p.PID == a.PID }
		if slices.ContainsFunc(procfs.Ancestors(procfs.System, pid), isAgent) {
			pids = append(pids, pid)
		}
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		continueSudo(p.t, parentOf(a.PID))
	}
}

// checkRuns fails the test if an agent has ended.
func (j *etcdJob) checkRuns() {
	j.t.Helper()
	for i, agent := range j.agents {
		if agent.endsWithin(0) {
			j.t.Fatalf("agent %d of job %q has ended (%v)", i, j.name, agent.cmd.ProcessState)
		}
	}
}
