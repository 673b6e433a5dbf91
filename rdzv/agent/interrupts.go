package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/delivery"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/wrap"
)

// interrupts ends the job, or the joining, for a reason outside of it: a signal, the end of the
// caller's context, the death of the launcher or of a task, the join timeout, rdzv stop. It also
// passes signals on to the workers.
type interrupts struct {
	joining context.Context // ends if there is to be no job; its cause says why
	giveUp  context.CancelCauseFunc

	received    context.Context // ends when all tasks have received such a signal, or none may come
	noMore      context.CancelFunc
	interrupted context.Context // ends with the first signal that ends the job, or with the launcher
	interrupt   context.CancelCauseFunc

	source *wrap.Source
	caught chan os.Signal // signals that are only caught so that they do not kill this process
	runs   atomic.Bool    // there are workers to forward signals to
	spare  atomic.Bool    // this agent waits for the loss of another one
	kill   chan struct{}  // closed by the second Ctrl-C
	dump   chan struct{}  // closed when workers that ignore SIGTERM are to show their stacks
	stop   chan struct{}
	wg     sync.WaitGroup
	tasks  []*delivery.Delivery // to the workers of each task, this process's own first

	mu        sync.Mutex
	session   *rdzv.Session
	gone      error       // a *LauncherDiedError or *TaskLostError; nil while all live
	final     bool        // the job cannot go on without it
	first     *wrap.Event // the first signal that ends the job
	byCaller  bool        // first is no signal: the caller's context has ended
	stopped   string      // who has stopped the job by a command; "" if nobody has
	other     time.Time   // when another agent withdrew; zero if none has
	killed    bool
	signalled wrap.Signalled
	killDelay time.Duration // between the launcher's SIGTERM and its SIGKILL; 0 if it sends none
	counting  bool          // the launcher has sent SIGTERM
}

// SignalError says that a signal ended this agent's part in the job before its workers started: it
// ended the joining, or the job goes on without the agent.
type SignalError struct {
	Signal    syscall.Signal
	Withdrawn bool // the job goes on: the agent was a spare, or between two attempts
	// InStep says that the agent is a task of srun: the code of a task that leaves becomes that of the
	// step, which may succeed.
	InStep bool
	By     string // who has ended the joining by a command instead of a signal; "" if nobody has
	Caller bool   // there was no signal: the context of the caller has ended
}

func (e *SignalError) Error() string {
	if e.By != "" {
		return e.By + " ended the job before it started"
	}
	reason := "received " + rdzv.Signal(e.Signal).String()
	if e.Caller {
		reason = "stopped by its caller"
	}
	if e.Withdrawn {
		return reason + ": the job goes on without this agent"
	}
	return reason + " before the job started"
}

// LauncherDiedError says that the launcher died before there was a job.
type LauncherDiedError struct {
	Name string // of the process
	PID  int    // 0 if Name says all
	Host string
}

func (e *LauncherDiedError) Error() string {
	if e.PID == 0 {
		return e.Name
	}
	return fmt.Sprintf("lost the launcher: %s (pid %d on %s) died", e.Name, e.PID, e.Host)
}

// TaskLostError says that another task of this node, whose workers this agent was to run, has died.
type TaskLostError struct {
	Rank int // the launcher's
	PID  int
	Host string
}

func (e *TaskLostError) Error() string {
	return fmt.Sprintf("lost the task of rank %d on %s (pid %d)", e.Rank, e.Host, e.PID)
}

// errJoinTimeout is why the joining ended: the deadline has passed.
var errJoinTimeout = errors.New("the join timeout has passed")

// sourceOf is the source of the signals to a task.
func (in *interrupts) sourceOf(t *Local) *wrap.Source {
	if t.task == nil {
		return in.source
	}
	return t.task.Signals
}

// loseTask is lose for a task.
func loseTask(in *interrupts, t *Local) {
	in.lose(&TaskLostError{t.Placement.Rank, t.task.PID, host.Name()}, false)
}

// lostTask is why this agent cannot take part in another attempt; nil if it can.
func lostTask(in *interrupts) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if lost, is := errors.AsType[*TaskLostError](in.gone); is {
		return lost
	}
	return nil
}

// write calls f, which writes something to the store, beside the listening: see reporter.write.
func (in *interrupts) write(f func(context.Context)) {
	in.wg.Go(func() { f(context.Background()) })
}

// sameSignal is how soon after another agent has withdrawn SIGTERM at this one is taken for a
// signal to all of them, which ends the job.
const sameSignal = time.Second

// endSession writes to the store that the first signal has ended the job, or that this agent leaves
// it.
func (in *interrupts) endSession() {
	end := in.ending(*in.first)
	in.write(func(ctx context.Context) { _ = end(ctx) })
}

// ending returns what writes to the store that a signal to this agent ends the session: SIGTERM to
// a single agent only makes that one withdraw.
func (in *interrupts) ending(e wrap.Event) func(context.Context) error {
	s := in.session
	if in.byCaller {
		s.ByCaller()
	}
	in.noteOther()
	if isForAll(e, in.other) {
		return func(ctx context.Context) error { return s.End(ctx, int(e.Signal), e.Shared) }
	}
	return func(ctx context.Context) error { return s.Withdraw(ctx, e.Shared) }
}

// isForAll tells whether a signal ends the job; other is when another agent has withdrawn, zero if
// none has.
func isForAll(e wrap.Event, other time.Time) bool {
	soon := !other.IsZero() && e.At.Before(other.Add(sameSignal))
	return e.Signal != syscall.SIGTERM || soon
}

// noteOther notes when another agent has withdrawn from the session, if one has.
func (in *interrupts) noteOther() {
	if in.session == nil {
		return
	}
	if at := in.session.OtherWithdrew(); !at.IsZero() {
		in.other = at
	}
}

// endByGroup returns what writes to the store that a signal to the process group has ended a
// worker.
func (in *interrupts) endByGroup(signal syscall.Signal) func(context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ending(wrap.Event{Signal: signal, Shared: true, At: time.Now()})
}

// lose ends the job, or the joining, because the launcher or a task of this agent has died. While
// workers run, the end of those of a task is reported by itself; the job does not need a spare.
func (in *interrupts) lose(gone error, final bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.gone != nil && !final {
		return
	}
	in.gone, in.final = gone, final
	in.noMore()
	if in.interrupt(gone); in.session != nil && (final || !in.runs.Load() && !in.spare.Load()) {
		in.loseSession()
	}
}

// loseSession writes to the store what has died.
func (in *interrupts) loseSession() {
	s, why, final := in.session, in.gone.Error(), in.final
	in.write(func(ctx context.Context) { _ = s.ReportLoss(ctx, why, final) })
}

// stopJob ends the job because its user has asked this agent for it; by says how, for all nodes. It
// ends a later attempt too, if the present one ends for another reason.
func (in *interrupts) stopJob(by string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped != "" {
		return
	}
	in.stopped = by
	in.noMore()
	in.interrupt(&SignalError{Signal: syscall.SIGTERM, By: by})
	if in.session != nil {
		in.stopSession()
	}
}

func (in *interrupts) stopSession() {
	s, by := in.session, in.stopped
	in.write(func(ctx context.Context) { _ = s.Stop(ctx, by) })
}
