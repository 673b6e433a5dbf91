package integration

import (
	"slices"
	"testing"
	"time"
)

// After a failure mpirun of Open MPI 4 returns at once from a host with three agents or more: they exit in an order that
// ends both of its waits of 1 s. One run of five may be late, for a machine that is busy with something else.
func TestMpirunReturnsAtOnce(t *testing.T) {
	var took []time.Duration
	for range 5 {
		p := newPlace(t)
		job := p.start(openMPI(p, 3, nil, worker("exit", p.dir("job"), "1", "7"))...)
		job.waitFor("rank 1 failed first: exit 7")
		failed := time.Now()
		if code := job.code(); code != 7 {
			t.Errorf("mpirun ended with %d, want 7", code)
		}
		took = append(took, time.Since(failed).Round(time.Millisecond))
	}
	if slices.Sort(took); took[3] > 700*time.Millisecond {
		t.Errorf("mpirun returned %v after the failure", took)
	}
}
