package integration

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// node1 is a login node with rdzv store, node2 and node3 run jobs.
func TestSharedStore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	t.Run("jobs", func(t *testing.T) { c.newPlace(t).checkSharedJobs() })
	t.Run("restart", func(t *testing.T) { c.newPlace(t).checkSharedRestart() })
	t.Run("token", func(t *testing.T) { c.newPlace(t).checkSharedToken() })
}

// startShared starts rdzv store and returns it, with the arguments that it prints for agents.
func (p *clusterPlace) startShared(host int) (store *process, argument []string) {
	p.t.Helper()
	store = p.on(host, *rdzvBin, "store")
	store.waitFor("rdzv: agents need the token in " + p.dir("home"))
	at := fmt.Sprintf("--store node%d:", host)
	store.waitFor(at)
	return store, strings.Fields(store.linesWith(at)[0])
}

// sharedJob starts an agent of a job on each of two hosts.
func (p *clusterPlace) sharedJob(hosts [2]int, job string, argument []string, argv ...string) (
	agents []*process,
) {
	p.t.Helper()
	flags := append([]string{"-v", "--nodes", "2", "--job", job}, argument...)
	for _, host := range hosts {
		agents = append(agents, p.on(host, rdzvExec(flags, argv)...))
	}
	return agents
}

// checkSharedJobs runs jobs one after another and at once, with and without the port of the store,
// also on the store's host, and fails if the store then has any job.
func (p *clusterPlace) checkSharedJobs() {
	store, argument := p.startShared(1)
	for i := range 6 {
		hosts, argument := [2]int{2, 3}, argument
		if i%2 == 1 {
			hosts, argument = [2]int{1, 3}, []string{"--store", "node1"}
		}
		job := p.sharedJob(hosts, "job", argument, "sh", "-c", fmt.Sprintf("exit $((RANK * %d))", i))
		checkCodes(i, job...)
		for _, agent := range job {
			if len(agent.linesWith("connected to the store at ")) != 1 {
				p.t.Errorf("an agent hosts the store: %q", agent.linesWith("rdzv:"))
			}
		}
	}
	flags := slices.Concat(argument, []string{"--max-restarts", "2"})
	again := p.sharedJob([2]int{2, 3}, "again", flags, "sh", "-c", "exit $((RANK * (1 - RDZV_ATTEMPT)))")
	checkCodes(0, again...)
	for _, agent := range again {
		if len(agent.linesWith("restarting all workers (restart 1 of 2)")) != 1 {
			p.t.Errorf("an agent whose worker failed printed %q", agent.linesWith("rdzv:"))
		}
	}
	var jobs []*process
	for i := range 8 {
		jobs = append(jobs, p.sharedJob([2]int{2, 3}, fmt.Sprint("job", i), argument, "true")...)
	}
	checkCodes(0, jobs...)
	store.signal(syscall.SIGTERM)
	store.checkCode(0)
	if left := store.linesWith("jobs in the store"); len(left) > 0 {
		p.t.Errorf("the store printed %q", left)
	}
}

// checkSharedRestart stops the store and starts it again, while agents wait for others, and while
// workers run.
func (p *clusterPlace) checkSharedRestart() {
	store, argument := p.startShared(1)
	restart := func(signal syscall.Signal) {
		store.signal(signal)
		store.checkCode(0)
		if len(store.linesWith("jobs in the store that ends: 1. ")) != 1 {
			p.t.Errorf("the store printed %q", store.linesWith("rdzv:"))
		}
		var again []string
		if store, again = p.startShared(1); !slices.Equal(again, argument) {
			p.t.Errorf("started again, the store is %q, want %q", again, argument)
		}
	}
	flags := append([]string{"-v", "--nodes", "2"}, argument...)
	waits := p.on(2, rdzvExec(flags, []string{"true"})...)
	waits.waitFor("connected to the store at ")
	restart(syscall.SIGINT)
	waits.waitFor("it was started again; looking for it, because no worker was started")
	checkCodes(0, waits, p.on(3, rdzvExec(flags, []string{"true"})...))

	runs := p.sharedJob([2]int{2, 3}, "runs", argument, "sleep", "1000")
	for _, agent := range runs {
		agent.waitFor("all agents joined")
	}
	restart(syscall.SIGTERM)
	checkCodes(123, runs...)
	for _, agent := range runs {
		if len(agent.linesWith("rdzv: lost the shared store at ", ": it was started again")) != 1 {
			p.t.Errorf("an agent printed %q", agent.linesWith("rdzv:"))
		}
	}
	store.signal(syscall.SIGTERM)
	store.checkCode(0)
}

// checkSharedToken runs agents with another token than the store's, and a second store.
func (p *clusterPlace) checkSharedToken() {
	store, argument := p.startShared(1)
	other := []string{"RDZV_TOKEN=" + oneToken}
	flags := append([]string{"--nodes", "2", "--join-timeout", "2s"}, argument...)
	refused := p.startWith(other, p.cluster.on(2, rdzvExec(flags, []string{"true"})...)...)
	refused.checkCode(124)
	for _, want := range []string{
		"rdzv: node1 (10.77.0.11) has a different token",
		"set RDZV_TOKEN here to the token of rdzv store, which prints where it is",
	} {
		if len(refused.linesWith(want)) == 0 {
			p.t.Errorf("an agent with another token printed %q, want %q", refused.linesWith("rdzv:"), want)
		}
	}
	store.waitFor("rdzv: refused a connection: node2 (10.77.0.12) has a different token")
	second := p.on(1, *rdzvBin, "store")
	second.checkCode(1)
	if len(second.linesWith("address already in use (by a shared store of yours)")) != 1 {
		p.t.Errorf("a second store printed %q", second.linesWith("rdzv:"))
	}
	store.signal(syscall.SIGHUP)
	store.checkCode(0)
}
