package agent

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"rdzv/wrap"
)

// A signal that is for workers, at a time when there are none, keeps nobody from hearing the next: a terminal that
// changes its size while agents look for each other once made Ctrl-C and --join-timeout of no effect.
func TestSignalsBeforeThereAreWorkers(t *testing.T) {
	o := listen(t.Context(), time.Now().Add(time.Minute), 0)
	defer o.close()
	for range 2 * maxPassed {
		for _, s := range passedSignals {
			o.take(wrap.Event{Signal: s})
		}
	}
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	select {
	case <-o.joining.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("SIGTERM is not heard")
	}
	if cause := (&SignalError{}); !errors.As(context.Cause(o.joining), &cause) || cause.Signal != syscall.SIGTERM {
		t.Errorf("the joining ended with %v", context.Cause(o.joining))
	}
	if len(o.forward) > 0 {
		t.Errorf("%d signals wait for workers that were not there when they came", len(o.forward))
	}
}
