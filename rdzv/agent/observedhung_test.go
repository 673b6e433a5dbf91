package agent

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/inspect"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/status"
)

// hungProc is a /proc whose files do not respond until it is closed.
type hungProc struct{ opened, closed chan struct{} }

func (p hungProc) Open(string) (fs.File, error) {
	select {
	case p.opened <- struct{}{}:
	default:
	}
	<-p.closed
	return nil, syscall.ESRCH
}

// Questions about a worker that hangs in the kernel keep neither the agent that asks nor this one.
func TestAnswerAboutHungProcess(t *testing.T) {
	for _, kind := range []string{inspect.StatusQuestion, inspect.StacksQuestion} {
		t.Run(kind, func(t *testing.T) {
			proc := hungProc{make(chan struct{}, 1), make(chan struct{})}
			defer close(proc.closed)
			l := &Local{Workers: 1}
			world := rdzv.World{Seat: rdzv.Seat{Tasks: []rdzv.SeatTask{{Slots: 1}}}}
			o := &observed{local: &Local{}, proc: proc, workers: &workers{
				local: l, output: outputOf(l, nil, world), world: world, devices: make([]envmap.Devices, 1),
			}}
			o.workers.tally.Number = 1
			o.workers.tally.Start(tally.Process{PID: 1})
			ctx, cancel := context.WithCancel(t.Context())
			answered := make(chan error, 1)
			go func() {
				_, err := o.answer(ctx, rdzv.Question{Kind: kind})
				answered <- err
			}()
			<-proc.opened
			cancel()
			select {
			case err := <-answered:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("answered with %v, want %v", err, context.Canceled)
				}
			case <-time.After(10 * time.Second):
				t.Error("not answered 10 s after nobody waits for it any more")
			}
		})
	}
}

// The end of an attempt that comes after the agent has joined the next one is not the end of that.
// An agent that has no place in an attempt tells why although the attempt goes on.
func TestEndOfAnotherAttempt(t *testing.T) {
	o := &observed{local: &Local{Agents: 2}}
	var first, second rdzv.Session
	o.joined("1", &first)
	o.enter(status.Restarting)
	o.joined("1", &second)
	o.ends(&first, rdzv.ErrStoreLost)
	if a := o.status(t.Context()); a.State != status.Restarting {
		t.Errorf("%+v, want a restart", a)
	}
	o.ends(&second, rdzv.ErrFull)
	if a := o.status(t.Context()); a.State != status.Ending || a.Ending != rdzv.ErrFull.Error() {
		t.Errorf("%+v, want the end: %v", a, rdzv.ErrFull)
	}
}
