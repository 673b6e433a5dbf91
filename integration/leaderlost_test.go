package integration

import (
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The agent that leads a job over `rdzv store` or etcd is killed between two attempts, while another
// one has something to say. The next leader has to find in the store what that was.
func TestLeaderIsLostBetweenAttempts(t *testing.T) {
	t.Parallel()
	e := startEtcd(t, 0, etcdOptions{program: distributionEtcd(t), before: 4})
	var scenarios []scenario
	for name, test := range leaderLosses {
		scenarios = append(scenarios, scenario{"etcd: " + name, func(t *testing.T) {
			test(e.replacedJob(t, 0, e.flags()...))
		}})
	}
	scenarios = append(scenarios, scenario{"rdzv store", func(t *testing.T) { // one at a time on a host
		for name, test := range leaderLosses {
			t.Run(name, func(t *testing.T) {
				j := e.replacedJob(t, 0)
				store, argument := j.startShared(4)
				j.flags = append(j.flags, argument...)
				test(j)
				store.signal(syscall.SIGTERM)
				store.checkCode(0)
			})
		}
	}})
	runConcurrently(t, scenarios)
	if left := e.keysLeft(); len(left) > 0 {
		t.Errorf("keys left: %q", left)
	}
}

var leaderLosses = map[string]func(j *replacedJob){
	"an agent of 3 has reported a loss": func(j *replacedJob) { j.reportsLoss("node2", "node3") },
	"an agent of 4 has reported a loss": func(j *replacedJob) { j.reportsLoss("node2", "node3", "node4") },
	"an agent leaves": func(j *replacedJob) {
		j.flags = append(j.flags, "--nodes", "3")
		workers := j.secondAttempt(3)
		j.loseLeaderAfter(func() { kill(workers[5]) })
		began := time.Now()
		for _, host := range []int{3, 2} { // the others wait for it; then nobody is left
			j.term(host)
			j.agents[host].checkCode(128 + int(syscall.SIGTERM))
			if len(j.agents[host].linesWith("received SIGTERM: the job goes on without this agent")) != 1 {
				j.t.Errorf("%q", j.agents[host].linesWith("rdzv: "))
			}
		}
		if took := time.Since(began); took > joinTimeout/2 {
			j.t.Errorf("the agents ended %v after SIGTERM", took)
		}
	},
	"an agent leaves, and there are spares": func(j *replacedJob) {
		j.flags = append(j.flags, "--nodes", "2", "--spares", "2")
		workers := j.secondAttempt(4)
		j.loseLeaderAfter(func() { kill(workers[3]) })
		j.term(2)
		j.left(2, "received SIGTERM: the job goes on without this agent")
		j.agents[1] = j.agents[3]
		j.end("node3 takes over ranks ", "node4 takes over ranks ")
	},
}

// reportsLoss checks that an agent whose runner was killed is among the rest of a job with a
// variable number of agents, which the leader is not.
func (j *replacedJob) reportsLoss(rest ...string) {
	j.t.Helper()
	agents := 1 + len(rest)
	j.flags = append(j.flags, "--nodes", fmt.Sprint("2:", agents), "--last-call", "1m")
	workers := j.secondAttempt(agents)
	j.loseLeaderAfter(func() { kill(parentOf(workers[2])) }) // on node2
	j.ranks(2, rest...)
	j.agents[1] = j.agents[2]
	j.end("lost the runner of rank ")
}

const joinTimeout = 40 * time.Second

// secondAttempt starts agents on the first hosts in turn, so that the first one leads, lets the
// first attempt fail, and returns the workers of the second one. The third attempt succeeds; it
// begins 1 s after the second one has ended.
func (j *replacedJob) secondAttempt(agents int) (workers []int) {
	j.t.Helper()
	j.program[4] = "2"
	j.flags = append(j.flags, "--join-timeout", joinTimeout.String(), "--peer-timeout", "5s")
	var hosts []string
	for host := 1; host <= agents; host++ {
		j.startAgent(host, "-v", "--node-rank", strconv.Itoa(host-1))
		j.agents[host].waitFor("connected to the store at ")
		hosts = append(hosts, "node"+strconv.Itoa(host))
	}
	if i := slices.Index(j.flags, "--spares"); i >= 0 {
		hosts = hosts[:agents-2]
	}
	kill(j.ranks(0, hosts...)[0])
	return j.ranks(1, hosts...)
}

// loseLeaderAfter ends an attempt and kills the leading agent, of host 1, before the next one.
func (j *replacedJob) loseLeaderAfter(end func()) {
	j.t.Helper()
	end()
	j.agents[2].waitFor("restarting all workers in 1s (restart 2 of 3)")
	kill(j.agents[1].pid())
	j.agents[1].checkCode(128 + 9)
	delete(j.agents, 1)
}
