package agent

import (
	"context"
	"syscall"
	"testing"
	"time"

	"rdzv/wrap"
)

// SIGTERM makes one agent leave, and ends the job soon after another agent has left, or before this
// one knows of that.
func TestSignalsThatEndTheJob(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		signal syscall.Signal
		after  time.Duration // the other agent has left; 0 if none has
		want   bool
	}{
		"only here":            {syscall.SIGTERM, 0, false},
		"Ctrl-C":               {syscall.SIGINT, 0, true},
		"SIGHUP":               {syscall.SIGHUP, 0, true},
		"at the same time":     {syscall.SIGTERM, -time.Second, true},
		"soon afterwards":      {syscall.SIGTERM, 900 * time.Millisecond, true},
		"later":                {syscall.SIGTERM, 1100 * time.Millisecond, false},
		"Ctrl-C later":         {syscall.SIGINT, time.Minute, true},
		"long after the other": {syscall.SIGTERM, time.Hour, false},
	} {
		var other time.Time
		if test.after != 0 {
			other = now.Add(-test.after)
		}
		if got := isForAll(wrap.Event{Signal: test.signal, At: now}, other); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// observedContext calls a function when somebody waits for its end.
type observedContext struct {
	context.Context
	waited func()
}

func (c observedContext) Done() <-chan struct{} {
	c.waited()
	return c.Context.Done()
}

// While an agent waits as a spare, the loss of one of its tasks does not end the job.
func TestSpareIsKnownWhileItWaits(t *testing.T) {
	m, in := &membership{reported: make(chan struct{})}, &interrupts{}
	close(m.reported)
	spare := false
	in.interrupted = observedContext{t.Context(), func() { spare = in.spare.Load() }}
	if waitAsSpare(m, in); !spare || in.spare.Load() {
		t.Errorf("it is a spare while it waits: %t, afterwards: %t", spare, in.spare.Load())
	}
}
