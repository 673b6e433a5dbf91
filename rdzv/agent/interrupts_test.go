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

// A signal for workers that arrives before there are any must not block later ones: resizing a
// terminal while agents waited for each other once disabled Ctrl-C and --join-timeout.
func TestSignalsBeforeThereAreWorkers(t *testing.T) {
	o := listen(t.Context(), time.Now().Add(time.Minute), 0)
	defer o.close()
	for range 2 * maxForwarded {
		for _, s := range forwardedSignals {
			o.take(wrap.Event{Signal: s})
		}
	}
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	select {
	case <-o.joining.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("SIGTERM did not end the joining")
	}
	if cause := (&SignalError{}); !errors.As(context.Cause(o.joining), &cause) || cause.Signal != syscall.SIGTERM {
		t.Errorf("the joining ended with %v", context.Cause(o.joining))
	}
	if len(o.forward) > 0 {
		t.Errorf("%d signals are queued for workers that did not exist when they arrived", len(o.forward))
	}
}
