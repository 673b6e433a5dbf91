package integration

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	campaignAgents = flag.Int("etcd-agents", 16, "number of agents of the jobs of TestEtcdCampaign")
	campaignTime   = flag.Duration("etcd-for", time.Minute,
		"how long TestEtcdCampaign kills and restarts members; other faults take a fifth of it")
	campaignRuns = flag.Int("etcd-runs", 1, "runs of each fault of TestEtcdCampaign")
)

// A campaign has jobs of many agents, each of which lives through a fault of the cluster that is its
// store, and the results. After a fault that must not end the job, its last worker is killed.
type campaign struct {
	t    *testing.T
	rows []string
}

// TestEtcdCampaign prints a table; make faults runs it with 64 agents.
func TestEtcdCampaign(t *testing.T) {
	c := &campaign{t: t, rows: []string{
		"fault|store|runs|exit codes of the agents|from the fault to the last end, s|" +
			"from a worker's end to the last end, ms|keys left", "---|---|---|---|---|---|---",
	}}
	defer func() { t.Log("\n" + markdownTable(c.rows)) }()
	for _, version := range []struct {
		name    string
		program func(*testing.T) string
	}{{"distribution", distributionEtcd}, {"module", moduleEtcd.path}} {
		t.Run(version.name, func(t *testing.T) { c.run(t, version.program(t)) })
	}
}

func (c *campaign) run(t *testing.T, program string) {
	for _, f := range etcdFaults {
		t.Run(f.name, func(t *testing.T) {
			f.program = program
			e := startEtcd(t, 2, f.etcdOptions)
			var results []faultResult
			for i := range *campaignRuns {
				results = append(results, f.run(t, e, i))
			}
			row := f.row(e.version(), results)
			t.Log(row) // a campaign is long
			c.rows = append(c.rows, row)
		})
	}
}

// version is that of the first member.
func (e *etcd) version() string {
	e.t.Helper()
	version := ""
	e.do(func(ctx context.Context) error {
		status, err := e.admin.Status(ctx, e.members[0].endpoint())
		if err == nil {
			version = "etcd " + status.Version
		}
		return err
	})
	return version
}

// An etcdFault is one kind of fault of the cluster.
type etcdFault struct {
	name     string
	embedded bool // the store of an agent instead, for comparison
	etcdOptions
	storeTimeout time.Duration // 0 is the default, 1 min
	// cause causes the fault and returns when it is over, or when it must have ended the job.
	cause func(e *etcd, j *etcdJob)
	code  int // with which the job ends; 0 if it goes on
	// repair ends the fault.
	repair func(e *etcd)
}

// faultResult is how a job ended.
type faultResult struct {
	codes  map[int]int   // number of agents by exit code
	ended  time.Duration // since the fault; 0 if the job went on
	worker time.Duration // since a worker ended; 0 if the job had ended before
	left   int           // number of keys
}

func (f etcdFault) run(t *testing.T, e *etcd, run int) (r faultResult) {
	flags, storeTimeout := e.flags(), cmp.Or(f.storeTimeout, time.Minute)
	if f.embedded {
		flags = []string{"--store", fmt.Sprint("node", e.agentHosts[0])}
	}
	if f.storeTimeout > 0 {
		flags = append(flags, "--store-timeout", storeTimeout.String())
	}
	j := e.startAgents(t, fmt.Sprint("run", run), *campaignAgents, flags)
	j.awaitWorkers()
	began := time.Now()
	if f.cause != nil {
		f.cause(e, j)
	}
	if f.code == 0 {
		j.checkRuns()
		began = time.Now()
		j.killWorker(*campaignAgents - 1)
	}
	r.codes = j.endings()
	if took := time.Since(began); f.code == 0 {
		r.worker = took
	} else {
		r.ended = took
	}
	if f.repair != nil {
		f.repair(e)
	}
	r.left = len(e.keysLeftAfter(jobLease(etcdPeerTimeout, storeTimeout) + 10*etcdPeerTimeout))
	j.removeFiles()
	f.check(t, r)
	return r
}

// endings waits for all agents, and counts them by exit code.
func (j *etcdJob) endings() map[int]int {
	codes := map[int]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, agent := range j.agents {
		all.Go(func() {
			if !agent.endsWithin(3 * waitLimit) {
				j.t.Errorf("%q has not ended", agent.argv)
				return
			}
			code := agent.code()
			mu.Lock()
			defer mu.Unlock()
			codes[code]++
		})
	}
	all.Wait()
	return codes
}

// check fails the test unless all agents have the same code; those that a fault has killed have
// none.
func (f etcdFault) check(t *testing.T, r faultResult) {
	t.Helper()
	want := f.code
	if want == 0 {
		want = 137
	}
	for code := range r.codes {
		if code != want && !(f.code == 123 && code == 137 && r.codes[code] == 1) {
			t.Errorf("%d agents ended with exit code %d, want %d", r.codes[code], code, want)
		}
	}
	if r.left > 0 {
		t.Errorf("%d keys are left", r.left)
	}
}

// row has the slowest run.
func (f etcdFault) row(store string, results []faultResult) string {
	codes, left := map[int]int{}, 0
	var ended, worker time.Duration
	for _, r := range results {
		for code, n := range r.codes {
			codes[code] += n
		}
		ended, worker = max(ended, r.ended), max(worker, r.worker)
		left = max(left, r.left)
	}
	var list []string
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		list = append(list, fmt.Sprintf("%d × %d", codes[code], code))
	}
	if f.embedded {
		store = "an agent's"
	}
	seconds, milliseconds := "goes on", "-"
	if ended > 0 {
		seconds = fmt.Sprintf("%.1f", ended.Seconds())
	} else {
		milliseconds = fmt.Sprint(worker.Milliseconds())
	}
	return strings.Join([]string{f.name, store, fmt.Sprint(len(results)), strings.Join(list, ", "),
		seconds, milliseconds, fmt.Sprint(left)}, "|")
}
