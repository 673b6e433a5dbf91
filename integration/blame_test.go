package integration

import (
	"fmt"
	"testing"
)

// Open MPI 4's mpirun names the task that exits first with another code than 0. That is the agent of
// the rank that has failed first, of which rdzv speaks too, whichever rank that is.
func TestMpirunNamesTheRankThatFailed(t *testing.T) {
	t.Parallel()
	if openMPI5 {
		t.Skip("mpirun 5 names no rank")
	}
	c := newCluster(t, 2)
	var scenarios []scenario
	for _, hosts := range []string{"node1:4", "node1:2,node2:2"} {
		for rank := range 4 {
			scenarios = append(scenarios, scenario{fmt.Sprintf("%s, rank %d", hosts, rank),
				func(t *testing.T) {
					p := c.newPlace(t)
					program := worker("exit", p.dir("job"), fmt.Sprint(rank), "7")
					line := p.openMPI("--host", hosts, "-np", "4")
					job := p.on(1, append(line, rdzvExec(joinSoon, program)...)...)
					job.checkCode(7)
					ours := job.linesWith(fmt.Sprintf("rank %d of 4 failed first", rank))
					theirs := job.linesWith("Process name: ", fmt.Sprintf(",1],%d]", rank))
					if len(ours) != 1 || len(theirs) != 1 {
						t.Errorf("rdzv printed %q, mpirun %q", job.linesWith("failed first"),
							job.linesWith("Process name: "))
					}
				}})
		}
	}
	runConcurrently(t, scenarios)
}
