package integration

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Two torch programs run on two hosts at the same time. Programs on these and on a third host
// connect to the MASTER_PORT of one of them, from before rank 0 listens until the job has ended. It
// succeeds like the other one, and the rank that reaches init_process_group late is named:
// connections that are not its own do not count.
func TestAttackPortScan(t *testing.T) {
	t.Parallel()
	p := newCluster(t, 3).newPlace(t)
	rate := "100"
	if *attackLong {
		rate = "1000"
	}
	var scanners []*process
	for host := range 3 {
		line := []string{self, "garbage", rate, "scan", "10.77.0.11", "28950", "28950"}
		scanners = append(scanners, p.on(host+1, line...))
	}
	for _, s := range scanners {
		s.waitFor("attacking")
	}
	late := filepath.Join(p.root, "late")
	scanned, other := p.startLate("28950", late), p.startLate("28970", late)
	for _, agents := range [][]*process{scanned, other} {
		waitForAny(t, "rank 3 (node2) has not reached init_process_group; 3 of 4 ranks", agents...)
	}
	createFile(t, late)
	checkCodes(0, other...)
	otherEnded := time.Now()
	checkCodes(0, scanned...)
	delay := time.Since(otherEnded)
	for _, s := range scanners {
		s.interrupt()
		s.checkCode(0)
		lines, _ := s.output()
		t.Logf("scanner: %s", strings.Join(lines, "; "))
	}
	var lines []string
	for _, agent := range scanned {
		lines = slices.Concat(lines, agent.linesWith("has not reached init_process_group"))
	}
	if len(lines) != 1 {
		t.Errorf("the agents printed %q, want one line about missing ranks", lines)
	}
	attackRow(t, "scans of MASTER_PORT from three hosts, "+rate+" connections per second each", 3,
		delay, "the job succeeded; the rank that was late was named")
}

// startLate starts a job whose rank 3 waits for the file late.
func (p *clusterPlace) startLate(port, late string) []*process {
	p.t.Helper()
	flags := strings.Fields("--nodes 2 --nproc-per-node 2 --store node1 --master-port " + port)
	line := rdzvExec(append(flags, "--job", port), []string{python, "-c", lateProgram, late})
	return []*process{p.on(1, line...), p.on(2, line...)}
}
