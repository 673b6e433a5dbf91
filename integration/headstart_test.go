package integration

import (
	"os"
	"testing"
)

// While the other ranks wait for the end of rank 0's head start, nothing else does: a failure of
// rank 0 ends the job.
func TestHeadStart(t *testing.T) {
	c := newJobCluster(t)
	forEachJobLauncher(t, func(t *testing.T, launcher string, hosts int) {
		script := []string{"sh", "-c", `touch "$0/$RANK"; exit 7`, jobDir}
		j := c.startJob(t, launcher, hosts, []string{"--head-start", "1h"}, script)
		j.checkCommands(7)
		started, err := os.ReadDir(j.records())
		if err != nil || len(started) != 1 || started[0].Name() != "0" {
			t.Errorf("%v have started (%v), want only rank 0", started, err)
		}
	})
}
