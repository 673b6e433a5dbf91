package integration

import (
	"slices"
	"testing"
	"time"
)

// After a failure, Open MPI 4's mpirun returns at once if it has three agents or more on a host:
// they exit in an order that ends both of its waits of 1 s. One of five runs may be slow, because
// the machine may be busy.
func TestMpirunReturnsAtOnce(t *testing.T) {
	var took []time.Duration
	for range 5 {
		p := newPlace(t)
		job := p.start(openMPI(p, 3, nil, worker("exit", p.dir("job"), "1", "7"))...)
		job.waitFor("rank 1 of 3 failed first")
		failed := time.Now()
		job.checkCode(7)
		took = append(took, time.Since(failed).Round(time.Millisecond))
	}
	if slices.Sort(took); took[3] > 700*time.Millisecond {
		t.Errorf("mpirun returned %v after the failure, want 4 of 5 times within 700ms", took)
	}
}
