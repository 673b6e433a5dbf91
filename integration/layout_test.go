package integration

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A layout is the expected host of each rank; "" is any host.
type layout []string

// check waits for the commands of one job and checks that it succeeded: all ranks were on their
// hosts, had the right environment and found each other, and rdzv printed at most the start line.
// It returns the records.
func (p *clusterPlace) check(want layout, commands ...*process) []record {
	p.t.Helper()
	var lines []string
	for _, c := range commands {
		c.checkCode(0)
		lines = append(lines, c.linesWith("rdzv:")...)
	}
	if output := p.batchOutput(); p.t.Failed() && output != "" {
		p.t.Logf("the batch script printed:\n%s", output)
	}
	all := records(p.t, filepath.Join(p.root, "job"), len(want))
	took := p.lastRecord().Sub(commands[0].started).Round(time.Millisecond)
	p.t.Logf("the last of %d workers started after %v", len(all), took)
	checkLayout(p.t, all, want)
	if output := p.batchOutput(); output == "" {
		checkStartLine(p.t, lines, all)
	}
	return all
}

// checkStartLine checks that a job that succeeded printed one line if it has several nodes, else
// nothing, but for the MASTER_ADDR of Kubeflow or --launcher env, which rdzv replaces.
func checkStartLine(t *testing.T, lines []string, all []record) {
	t.Helper()
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "rdzv: replacing variables of the environment: MASTER_ADDR=")
	})
	hosts := map[string]bool{}
	for _, r := range all {
		hosts[r.Env["WORKER_HOST"]] = true
	}
	first := all[0].Env
	host := first["WORKER_HOST"]
	start := fmt.Sprintf("rdzv: %d ranks on %d nodes: %s 0", len(all), len(hosts), host)
	end := "; rank 0 at " + first["MASTER_ADDR"]
	switch {
	case len(hosts) == 1 && len(lines) == 0:
	case len(hosts) > 1 && len(lines) == 1 &&
		strings.HasPrefix(lines[0], start) && strings.HasSuffix(lines[0], end):
	default:
		t.Errorf("rdzv printed %q, want only %q of a job on several nodes", lines, start+"..."+end)
	}
}

// lastRecord is the time at which the last worker of the job left its record.
func (p *clusterPlace) lastRecord() (last time.Time) {
	files, _ := filepath.Glob(filepath.Join(p.root, "job", "*.json"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// checkLayout checks the hosts of the ranks and what their environments say about them.
func checkLayout(t *testing.T, all []record, want layout) {
	t.Helper()
	ranksOn, nodeRank := map[string]int{}, map[string]string{}
	localRank := make([]int, len(all))
	for rank, r := range all {
		host := r.Env["WORKER_HOST"]
		if want[rank] != "" && host != want[rank] {
			t.Errorf("rank %d ran on %s, want %s", rank, host, want[rank])
		}
		if _, known := nodeRank[host]; !known {
			nodeRank[host] = r.Env["NODE_RANK"]
		}
		localRank[rank] = ranksOn[host]
		ranksOn[host]++
	}
	for rank, r := range all {
		host := r.Env["WORKER_HOST"]
		r.checkEnv(t, map[string]string{
			"WORLD_SIZE": strconv.Itoa(len(all)), "GROUP_WORLD_SIZE": strconv.Itoa(len(nodeRank)),
			"LOCAL_RANK":       strconv.Itoa(localRank[rank]),
			"LOCAL_WORLD_SIZE": strconv.Itoa(ranksOn[host]),
			"NODE_RANK":        nodeRank[host], "GROUP_RANK": nodeRank[host],
		})
		for _, name := range []string{"MASTER_ADDR", "MASTER_PORT", "RDZV_RUN_ID", "RDZV_DETECTED"} {
			if r.Env[name] != all[0].Env[name] {
				t.Errorf("rank %d has %s=%q, rank 0 has %q", rank, name, r.Env[name],
					all[0].Env[name])
			}
		}
	}
	checkNodeRanks(t, slices.Sorted(maps.Values(nodeRank)))
	all[0].checkEnv(t, map[string]string{"NODE_RANK": "0"}) // other programs join at MASTER_ADDR there
}

// checkNodeRanks checks that the nodes are numbered from 0.
func checkNodeRanks(t *testing.T, ranks []string) {
	t.Helper()
	for i, rank := range ranks {
		if rank != strconv.Itoa(i) {
			t.Errorf("the nodes have the node ranks %q, want 0 to %d", ranks, len(ranks)-1)
			return
		}
	}
}
