package pmi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"rdzv/internal/pmitest"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]string{ // MPICH 4.0 and 4.2: the order of fields differs
		"cmd=get_result rc=0 msg=success value=(vector,(0,2,2))": "get_result 0 (vector,(0,2,2))",
		"cmd=get_result rc=0 value=a=b,c found=TRUE":             "get_result 0 a=b,c",
		"cmd=barrier_out": "barrier_out  ",
	} {
		r, err := parse(line)
		if got := r["cmd"] + " " + r["rc"] + " " + r["value"]; err != nil || got != want {
			t.Errorf("parse(%q) = %q, %v, want %q", line, got, err, want)
		}
	}
	for _, bad := range []string{"", "rc=0", "=", "cmd=", "hello world"} {
		if r, err := parse(bad); err == nil {
			t.Errorf("parse(%q) = %v, want an error", bad, r)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("cmd=get_result rc=0 msg=success value=(vector,(0,2,2))")
	f.Fuzz(func(t *testing.T, line string) {
		if r, err := parse(line); err == nil && r["cmd"] == "" {
			t.Errorf("parse(%q) = %v", line, r)
		}
	})
}

// Nothing is written to a file of this process that has the number of a descriptor which a container
// was not given.
func TestNotPassed(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "own"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, fd := range map[string]int{"another file": int(file.Fd()), "closed": 1 << 20} {
		c, err := Start(t.Context(), fd)
		if _, ok := errors.AsType[*NotPassedError](err); c != nil || !ok {
			t.Errorf("%s: Start = %v, %v, want a NotPassedError", name, c, err)
		}
	}
	if info, err := file.Stat(); err != nil || info.Size() > 0 {
		t.Errorf("the file was written to: %v, %v", info, err)
	}
}

// Each rank can get after the barrier what another has put before it.
func TestClient(t *testing.T) {
	const size = 2
	hydra := pmitest.Start(t, size)
	var group sync.WaitGroup
	for rank := range size {
		group.Go(func() {
			c, err := Start(t.Context(), hydra.FDs[rank])
			if err == nil && rank == 0 {
				err = c.Put(t.Context(), "key", "a=b;c")
			}
			if err = errors.Join(err, c.Barrier(t.Context())); err != nil {
				t.Errorf("rank %d: %v", rank, err)
				return
			}
			if got, err := c.Get(t.Context(), "key"); got != "a=b;c" || err != nil {
				t.Errorf("rank %d: Get = %q, %v", rank, got, err)
			}
			c.Finalize()
		})
	}
	group.Wait()
	ended := map[int]bool{<-hydra.Finished: true, <-hydra.Finished: true}
	if len(ended) != size {
		t.Errorf("finalize was sent by %v:\n%s", ended, hydra.Received())
	}
}

// A rank that waits at the barrier returns the cause with which its context ended.
func TestBarrierEndsWithItsContext(t *testing.T) {
	hydra := pmitest.Start(t, 2)
	c, err := Start(t.Context(), hydra.FDs[0])
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("timeout")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
	defer cancel()
	if err := c.Barrier(ctx); !errors.Is(err, cause) {
		t.Errorf("Barrier: %v", err)
	}
}
