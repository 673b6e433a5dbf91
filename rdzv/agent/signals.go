package agent

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/delivery"
	"rdzv/wrap"
)

// endSignals are the signals that end the job, on all nodes.
var endSignals = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// forwardedSignals are the signals that this agent's workers get and that mean nothing to the
// agent. SIGTSTP is package wrap's (job control).
var forwardedSignals = []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
	syscall.SIGWINCH}

// listen begins to listen. It ends the joining at ctx's end and at the deadline (zero: none).
// killDelay is how long after its SIGTERM the launcher sends SIGKILL, 0 if it does not. tasks are
// the others that this agent serves.
func listen(
	ctx context.Context, deadline time.Time, signalled wrap.Signalled, killDelay time.Duration,
	tasks []*Local,
) *interrupts {
	in := &interrupts{
		source: wrap.Signals(slices.Concat(endSignals, forwardedSignals)...),
		caught: make(chan os.Signal, 1), kill: make(chan struct{}),
		dump: make(chan struct{}), stop: make(chan struct{}), killDelay: killDelay,
		tasks: []*delivery.Delivery{delivery.New()}, signalled: signalled,
	}
	// The reader of our standard error may die before us, above all a launcher. The signal is
	// caught, not ignored: what is ignored stays ignored in the workers.
	signal.Notify(in.caught, syscall.SIGPIPE)
	in.interrupted, in.interrupt = context.WithCancelCause(context.Background())
	in.received, in.noMore = context.WithCancel(context.Background())
	in.joining, in.giveUp = context.WithCancelCause(in.interrupted)
	for _, t := range tasks {
		to := delivery.New()
		in.tasks = append(in.tasks, to)
		in.wg.Go(func() { in.receive(to, t) })
	}
	in.wg.Go(func() { in.run(ctx, deadline) })
	return in
}

// close stops listening.
func (in *interrupts) close() {
	close(in.stop)
	in.wg.Wait()
	in.source.Close()
	signal.Stop(in.caught)
	in.interrupt(context.Canceled)
	in.noMore()
}

func (in *interrupts) run(ctx context.Context, deadline time.Time) {
	var late <-chan time.Time
	if !deadline.IsZero() {
		late = time.After(time.Until(deadline))
	}
	done := ctx.Done()
	for {
		select {
		case e := <-in.source.C:
			in.take(in.tasks[0], e)
		case <-done: // the caller's context ends the job as a signal to this process does
			done = nil
			if lost, is := errors.AsType[*LauncherDiedError](context.Cause(ctx)); is {
				in.lose(lost, true)
			} else {
				in.endByCaller()
			}
		case <-late:
			in.giveUp(errJoinTimeout)
		case <-in.stop:
			return
		}
	}
}

// receive takes the signals to another task, until that is lost.
func (in *interrupts) receive(to *delivery.Delivery, t *Local) {
	for {
		select {
		case e := <-t.task.Signals.C:
			in.take(to, e)
		case <-t.task.Lost:
			loseTask(in, t)
			return
		case <-in.stop:
			return
		}
	}
}

// joined makes signals end this session from now on, also one that came just before, and also if
// the launcher died just before.
func (in *interrupts) joined(s *rdzv.Session) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.noteOther()
	in.session = s
	if in.first != nil {
		in.endSession()
	}
	if in.stopped != "" {
		in.stopSession()
	}
	if in.gone != nil {
		in.loseSession()
	}
}

// begin lets signals reach the workers that are about to start, and none that came before.
func (in *interrupts) begin() {
	for _, to := range in.tasks {
		to.Forget()
	}
	in.runs.Store(true)
}

// take handles one signal to a task.
func (in *interrupts) take(to *delivery.Delivery, e wrap.Event) {
	switch {
	case slices.Contains(endSignals, e.Signal):
		in.end(to, e)
	case !in.runs.Load(): // there are no workers
	default:
		to.Pass(e)
	}
}

// How much later than another agent this one may get a signal that a launcher sends to all: on a
// busy machine more than 200 ms were seen with Open MPI 5. If the workers of the other agent did
// not get it, the launcher has probably not sent it.
const (
	ownWait       = 200 * time.Millisecond
	ownWaitShared = time.Second
)

// awaitOwn waits, a little, until all tasks of this agent have received their signals. A dead
// launcher sends none, nor does the caller of this agent. shared says that the workers of the agent
// that ended the job have received the signal too.
func (in *interrupts) awaitOwn(shared bool) {
	in.mu.Lock()
	byCaller := in.byCaller
	in.mu.Unlock()
	if byCaller {
		return
	}
	wait := ownWait
	if shared {
		wait = ownWaitShared
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-in.received.Done():
	case <-late.C:
	}
}

// end makes the first of these signals end the job, and the second Ctrl-C kill what is left of
// this agent's workers. The first one does that if the job has already ended for another reason.
func (in *interrupts) end(to *delivery.Delivery, e wrap.Event) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.countDown(e)
	if e.Signal == syscall.SIGINT && !in.killed && in.repeats(to, e) {
		in.killed = true
		close(in.kill)
	}
	if to.First == nil {
		to.First = &e
		if !delivery.AnyWaits(in.tasks) {
			in.noMore()
		}
	}
	if in.first != nil {
		return
	}
	in.first = &e
	in.interrupt(&SignalError{Signal: e.Signal, Caller: in.byCaller})
	if in.session != nil {
		in.endSession()
	}
}

// endByCaller ends the job as SIGTERM does, unless a signal has.
func (in *interrupts) endByCaller() {
	in.mu.Lock()
	in.byCaller = in.first == nil
	in.mu.Unlock()
	in.end(in.tasks[0], wrap.Event{Signal: syscall.SIGTERM, At: time.Now()})
}

// SentTwice is how long after a signal another one is the same: timeout(1) signals its child, and
// then its own process group, and sudo passes on a signal to that. Nobody types Ctrl-C twice in
// that time.
const SentTwice = 100 * time.Millisecond

// repeats tells whether this signal comes after the one that has ended the job, or after its end.
// Another task has had that one too.
func (in *interrupts) repeats(to *delivery.Delivery, e wrap.Event) bool {
	if to.First == nil {
		return in.first == nil && in.overOtherwise()
	}
	return e.At.Sub(to.First.At) > SentTwice
}

// overOtherwise tells whether the job has ended, but not because of a signal, which a launcher may
// also send to this agent.
func (in *interrupts) overOtherwise() bool {
	if in.session == nil {
		return false
	}
	v := in.session.Verdict()
	return v != nil && v.Kind != rdzv.Ended
}

// countDown gives workers that ignore the launcher's SIGTERM two fifths of the time until its
// SIGKILL: then they are to show their stacks, which takes longer on a busy node. Workers that
// catch SIGTERM have all of it.
func (in *interrupts) countDown(e wrap.Event) {
	if in.counting || in.killDelay == 0 || e.Signal != syscall.SIGTERM || in.byCaller {
		return
	}
	in.counting = true
	in.wg.Go(func() {
		select {
		case <-time.After(in.killDelay * 2 / 5):
			close(in.dump)
		case <-in.stop:
		}
	})
}

// stopFor says how to stop the workers of a task of a job that ended for this cause: those that
// have received the signal themselves get no other.
func (in *interrupts) stopFor(cause error, task int) *wrap.Stop {
	in.mu.Lock()
	defer in.mu.Unlock()
	stop := &wrap.Stop{Err: cause}
	if first := in.tasks[task].First; first != nil && first.Shared {
		stop.Delivered, stop.At = first.Signal, first.At
	}
	stop.Groups = in.first != nil && !in.byCaller
	if v, ok := errors.AsType[*rdzv.Verdict](cause); ok {
		stop.DumpStacks = v.Kind == rdzv.Straggling || v.Kind == rdzv.Stalled
	}
	return stop
}
