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

// Signals for workers that arrive before the workers start are not queued: a full queue would block
// the signals that end the job (resizing a terminal sends many SIGWINCH).
func TestSignalsBeforeThereAreWorkers(t *testing.T) {
	in := listen(t.Context(), time.Now().Add(time.Minute), wrap.Alone, 0, nil)
	defer in.close()
	for range 2 * maxForwarded {
		for _, s := range forwardedSignals {
			in.take(wrap.Event{Signal: s})
		}
	}
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	select {
	case <-in.joining.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("SIGTERM did not end the joining within 20s")
	}
	var cause *SignalError
	if !errors.As(context.Cause(in.joining), &cause) || cause.Signal != syscall.SIGTERM {
		t.Errorf("the joining ended with %v, want SIGTERM", context.Cause(in.joining))
	}
	if len(in.forward) > 0 {
		t.Errorf("%d signals are queued for workers that do not exist, want none", len(in.forward))
	}
}

// The second Ctrl-C kills workers; timeout(1), which sends a signal twice, leaves them their time.
func TestSecondInterrupt(t *testing.T) {
	first := time.Now()
	for between, want := range map[time.Duration]bool{
		50 * time.Microsecond: false, sentTwice: false, 150 * time.Millisecond: true,
	} {
		in := &interrupts{first: &wrap.Event{Signal: syscall.SIGINT, At: first}}
		e := wrap.Event{Signal: syscall.SIGINT, At: first.Add(between)}
		if got := in.repeats(e); got != want {
			t.Errorf("after %v: %t, want %t", between, got, want)
		}
	}
}
