package integration

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// garbageJobs are the kinds of jobs that TestAttackGarbage starts, each with two ranks on node1.
var garbageJobs = []struct {
	kind  string
	lines func(program []string) [][]string
}{
	{"mpirun", func(program []string) [][]string {
		return [][]string{append(mpirunCommand(2), rdzvExec(joinSoon, program)...)}
	}},
	{"mpiexec.hydra", func(program []string) [][]string {
		line := rdzvExec(joinSoon, program)
		return [][]string{append([]string{"mpiexec.hydra", "-n", "2"}, line...)}
	}},
	{"multicast", func(program []string) [][]string {
		return onOneHost(2, append([]string{"--nodes", "2"}, joinSoon...), program)
	}},
	{"--store", func(program []string) [][]string {
		return onOneHost(2, append([]string{"--nodes", "2", "--store", "node1"}, joinSoon...),
			program)
	}},
	{"one agent", func(program []string) [][]string {
		return [][]string{rdzvExec([]string{"--nproc-per-node", "2"}, program)}
	}},
}

// While the jobs of a user start on one node, somebody without the token connects to all ports that
// their stores may have, at 1000 connections per second, and sends garbage there and 10,000
// multicast packets per second: random, too large, and beacons of these jobs with other content.
func TestAttackGarbage(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	p := c.newPlace(t)
	alone, attacked := 5, 10
	if *attackLong {
		alone, attacked = 40, 200
	}
	before, _ := p.garbagePhase("alone", alone)
	attackers := []*process{
		p.on(2, self, "garbage", "10000", "packets"),
		p.on(2, self, "garbage", "1000", "connections", "10.77.0.11", "29600", "29999"),
		p.on(1, self, "garbage", "1000", "connections", "127.0.0.1", "29600", "29999"),
	}
	for _, a := range attackers {
		a.waitFor("attacking")
	}
	waiting := p.on(1, rdzvExec([]string{"--nodes", "2"}, []string{"true"})...)
	during, succeeded := p.garbagePhase("attacked", attacked)
	waiting.waitFor("has a different token") // as the attacker's beacons say
	used := cpuClock(waiting.pid()).Seconds() / time.Since(waiting.started).Seconds()
	waiting.interrupt()
	waiting.checkCode(130)
	if lines, _ := waiting.output(); len(lines) > 10 {
		t.Errorf("an agent that waited printed %d lines, want at most 10: %q", len(lines), lines)
	}
	for _, a := range attackers {
		a.interrupt()
		a.checkCode(0)
		lines, _ := a.output()
		t.Logf("attacker: %s", strings.Join(lines, "; "))
	}
	delay := max(0, during[len(during)-1]-before[len(before)-1])
	t.Logf("an agent that waited used %.0f%% of a core", 100*used)
	t.Logf("median of all jobs %v, longest %v; attacked: %v, %v", before[len(before)/2],
		before[len(before)-1], during[len(during)/2], during[len(during)-1])
	attackRow(t, "garbage on all ports and 10,000 packets per second, jobs that start", 2, delay,
		fmt.Sprintf("%d of %d jobs succeeded; median %.2f s, %.2f s without", succeeded,
			len(during),
			during[len(during)/2].Seconds(), before[len(before)/2].Seconds()))
}

// garbagePhase runs jobs, some at the same time, and returns how long each took, sorted.
func (p *clusterPlace) garbagePhase(name string, n int) (took []time.Duration, succeeded int) {
	p.t.Helper()
	jobs := make(chan []*process)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range *atOnce {
		all.Go(func() {
			for job := range jobs {
				failed := 0
				for _, agent := range job {
					failed += agent.code()
				}
				mu.Lock()
				took = append(took, time.Since(job[0].started))
				if failed == 0 {
					succeeded++
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		jobs <- p.startGarbageJob(name, i)
	}
	close(jobs)
	all.Wait()
	for i := range n {
		p.checkGarbageJob(name, i)
	}
	if succeeded < n {
		p.t.Errorf("%s: %d of %d jobs succeeded", name, succeeded, n)
	}
	slices.Sort(took)
	return took, succeeded
}

func (p *clusterPlace) startGarbageJob(name string, i int) (job []*process) {
	p.t.Helper()
	name = fmt.Sprint(name, i)
	session := ownSession(p.place, name)
	for _, line := range garbageJobs[i%len(garbageJobs)].lines(peer(p.dir(name))) {
		job = append(job, p.startWith(session, p.cluster.on(1, line...)...))
	}
	return job
}

// checkGarbageJob checks that a job had two workers, with the ranks 0 and 1 of 2.
func (p *clusterPlace) checkGarbageJob(name string, i int) {
	p.t.Helper()
	dir := filepath.Join(p.root, fmt.Sprint(name, i))
	if countRecords(dir) != 2 {
		p.t.Errorf("job %d (%s) had %d workers, want 2", i, garbageJobs[i%len(garbageJobs)].kind,
			countRecords(dir))
		return
	}
	for rank, r := range records(p.t, dir, 2) {
		r.checkEnv(p.t, map[string]string{"RANK": strconv.Itoa(rank), "WORLD_SIZE": "2"})
	}
}
