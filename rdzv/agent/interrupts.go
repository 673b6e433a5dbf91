package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/delivery"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/wrap"
)

// endSignals are the signals that end the job, on all nodes.
var endSignals = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// forwardedSignals are the signals that this agent's workers get and that mean nothing to the
// agent. SIGTSTP is package wrap's (job control).
var forwardedSignals = []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
	syscall.SIGWINCH}

// interrupts is what ends the job, or the joining, from outside of it: signals, the end of the
// caller's context, the death of the launcher, the join timeout.
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
	left      chan struct{} // closed when the agent has left session; nil before it has joined
	gone      error         // a *LauncherDiedError or *TaskLostError; nil while all live
	final     bool          // the job cannot go on without it
	first     *wrap.Event   // the first signal that ends the job
	byCaller  bool          // first is no signal: the caller's context has ended
	stopped   string        // who has stopped the job by a command; "" if nobody has
	other     time.Time     // when another agent withdrew; zero if none has
	killed    bool
	signalled wrap.Signalled
	killDelay time.Duration // between the launcher's SIGTERM and its SIGKILL; 0 if it sends none
	counting  bool          // the launcher has sent SIGTERM
}

// listen begins to listen. It ends the joining at ctx's end and at the deadline (zero: none).
// killDelay is how long after its SIGTERM the launcher sends SIGKILL, 0 if it does not. The signals
// in share are for the workers of all agents. tasks are the others that this agent serves.
func listen(
	ctx context.Context, deadline time.Time, signalled wrap.Signalled, killDelay time.Duration,
	share []syscall.Signal, tasks []*Local,
) *interrupts {
	in := &interrupts{
		source: wrap.Signals(slices.Concat(endSignals, forwardedSignals)...),
		caught: make(chan os.Signal, 1), kill: make(chan struct{}),
		dump: make(chan struct{}), stop: make(chan struct{}), killDelay: killDelay,
		tasks: []*delivery.Delivery{delivery.New(share)}, signalled: signalled,
	}
	// The reader of our standard error may die before us, above all a launcher. The signal is
	// caught, not ignored: what is ignored stays ignored in the workers.
	signal.Notify(in.caught, syscall.SIGPIPE)
	in.interrupted, in.interrupt = context.WithCancelCause(context.Background())
	in.received, in.noMore = context.WithCancel(context.Background())
	in.joining, in.giveUp = context.WithCancelCause(in.interrupted)
	for _, t := range tasks {
		to := delivery.New(share)
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
	reason := fmt.Sprintf("received signal %d", int(e.Signal))
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
	PID  int
	Host string
}

func (e *LauncherDiedError) Error() string {
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
			in.endByCaller()
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
		case e := <-t.task.Signals:
			in.take(to, e)
		case <-t.task.Lost:
			loseTask(in, t)
			return
		case <-in.stop:
			return
		}
	}
}

// loseTask is lose for a task.
func loseTask(in *interrupts, t *Local) {
	in.lose(&TaskLostError{t.Placement.Rank, t.task.PID, host.Name()}, false)
}

// take handles one signal to a task.
func (in *interrupts) take(to *delivery.Delivery, e wrap.Event) {
	switch {
	case slices.Contains(endSignals, e.Signal):
		in.end(to, e)
	case !in.runs.Load(): // there are no workers
	case to.Direct.Has(e.Signal):
		in.share(to, e)
	default:
		to.Pass(e)
	}
}

// share tells the other agents of a signal that a task has received. Its workers get it as all
// others do, when all agents know of it, unless they have received it already.
func (in *interrupts) share(to *delivery.Delivery, e wrap.Event) {
	if e.Shared {
		to.Direct.Note(e.Signal, e.At)
		to.Pass(e) // to workers that start later
	}
	in.mu.Lock()
	s := in.session
	in.mu.Unlock()
	in.write(func(ctx context.Context) { _ = s.ShareSignal(ctx, int(e.Signal), e.At, e.Shared) })
}

// receiveShared takes the signals that agents of the session share, until this one has left it.
func (in *interrupts) receiveShared(s *rdzv.Session, left <-chan struct{}) {
	for {
		select {
		case signal := <-s.SharedSignals():
			for _, to := range in.tasks {
				in.wg.Go(func() { in.takeShared(to, signal) })
			}
		case <-left:
			return
		case <-in.stop:
			return
		}
	}
}

// takeShared passes a signal to the workers unless they have received it directly, or do so soon.
// It may come when they leave: a worker that does not handle it any more must not be ended by it.
func (in *interrupts) takeShared(to *delivery.Delivery, s rdzv.SharedSignal) {
	wait, signal := ownWait, syscall.Signal(s.Signal)
	switch {
	case in.signalled != wrap.Everyone:
		wait = 0 // they get it from their agents alone
	case s.Direct:
		wait = ownWaitShared
	case s.Own && len(in.tasks) == 1:
		wait = 0
	}
	if to.Direct.Has(signal) && !to.Direct.Await(signal, wait, in.stop) {
		to.Pass(wrap.Event{Signal: signal, IfHandled: true})
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

// sentTwice is how long after a signal another one is the same: timeout(1) signals its child, and
// then its own process group. Nobody types Ctrl-C twice in that time.
const sentTwice = 100 * time.Millisecond

// repeats tells whether this signal comes after the one that has ended the job, or after its end.
// Another task has had that one too.
func (in *interrupts) repeats(to *delivery.Delivery, e wrap.Event) bool {
	if to.First == nil {
		return in.first == nil && in.overOtherwise()
	}
	return e.At.Sub(to.First.At) > sentTwice
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

// joined makes signals end this session from now on, also one that came just before, and also if
// the launcher died just before.
func (in *interrupts) joined(s *rdzv.Session) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.left != nil {
		close(in.left)
	}
	left := make(chan struct{})
	in.noteOther()
	in.session, in.left = s, left
	if in.first != nil {
		in.endSession()
	}
	if in.stopped != "" {
		in.stopSession()
	}
	if in.gone != nil {
		in.loseSession()
	}
	if in.tasks[0].Direct.Any() {
		in.wg.Go(func() { in.receiveShared(s, left) })
	}
}

// begin lets signals reach the workers that are about to start, and none that came before.
func (in *interrupts) begin() {
	for _, to := range in.tasks {
		to.Forget()
	}
	in.runs.Store(true)
}

// write calls f, which writes something to the store, beside the listening: see membership.write.
func (in *interrupts) write(f func(context.Context)) {
	in.wg.Go(func() { f(context.Background()) })
}

// stopFor says how to stop the workers of a job that ended for this cause: those that have
// received the signal themselves get no other.
func (in *interrupts) stopFor(cause error) *wrap.Stop {
	in.mu.Lock()
	defer in.mu.Unlock()
	stop := &wrap.Stop{Err: cause}
	if own := in.tasks[0].First; own != nil && own.Shared { // other tasks know theirs
		stop.Delivered, stop.At = own.Signal, own.At
	}
	stop.Groups = in.first != nil && !in.byCaller
	if v, ok := errors.AsType[*rdzv.Verdict](cause); ok {
		stop.DumpStacks = v.Kind == rdzv.Straggling || v.Kind == rdzv.Stalled
	}
	return stop
}
