package agent

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"rdzv/rdzv/agent/internal/delivery"
	"rdzv/wrap"
)

// Signals for workers that arrive before the workers start are not queued: a full queue would block
// the signals that end the job (resizing a terminal sends many SIGWINCH).
func TestSignalsBeforeThereAreWorkers(t *testing.T) {
	in := listen(t.Context(), time.Now().Add(time.Minute), wrap.Alone, 0, nil)
	defer in.close()
	for range 2 * cap(in.tasks[0].Forward) {
		for _, s := range forwardedSignals {
			in.take(in.tasks[0], wrap.Event{Signal: s})
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
	if len(in.tasks[0].Forward) > 0 {
		t.Errorf("%d signals are queued for workers that do not exist, want none", len(in.tasks[0].Forward))
	}
}

// The second Ctrl-C kills workers; timeout(1), which sends a signal twice, leaves them their time, as
// does the first Ctrl-C that another task gets later.
func TestSecondInterrupt(t *testing.T) {
	first := wrap.Event{Signal: syscall.SIGINT, At: time.Now()}
	interrupted := &delivery.Delivery{First: &first}
	in := &interrupts{first: &first}
	for between, want := range map[time.Duration]bool{
		50 * time.Microsecond: false, SentTwice: false, 150 * time.Millisecond: true,
	} {
		e := wrap.Event{Signal: syscall.SIGINT, At: first.At.Add(between)}
		if got := in.repeats(interrupted, e); got != want {
			t.Errorf("after %v: %t, want %t", between, got, want)
		}
		if in.repeats(new(delivery.Delivery), e) {
			t.Errorf("after %v: the first one of another task is taken for the second", between)
		}
	}
}
