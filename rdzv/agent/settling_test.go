package agent

import (
	"testing"
	"time"

	"rdzv/internal/boottime"
	"rdzv/rdzv/agent/internal/overlap"
	"rdzv/wrap"
)

// An agent that notices late that it is cut off says at once which workers it waits for: they are
// being stopped since their lease is over.
func TestSettlingWait(t *testing.T) {
	w := workers{lease: overlap.Lease{Lease: &wrap.Lease{}}}
	if wait := w.settlingWait(); wait != settlingTime {
		t.Errorf("without a lease it waits for %v, want %v", wait, settlingTime)
	}
	w.lease.Renew(boottime.Now() + time.Hour)
	if wait := w.settlingWait(); wait != settlingTime {
		t.Errorf("with a lease it waits for %v, want %v", wait, settlingTime)
	}
	w.lease = overlap.Lease{Lease: &wrap.Lease{}}
	w.lease.Renew(boottime.Now() - 3*time.Second)
	if wait := w.settlingWait(); wait > settlingTime-3*time.Second {
		t.Errorf("3s after the end of the lease it waits for %v, want none", wait)
	}
}
