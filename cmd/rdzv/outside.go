package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/wrap"
)

// ending are the signals that end the job, on all nodes.
var ending = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// passing are those that reach this agent's workers and mean nothing to rdzv.
// SIGTSTP is package wrap's (job control).
var passing = []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH}

// outside is what other processes and the terminal tell this one. While the
// agents have not met, a signal ends the looking for each other; afterwards it
// ends the job.
type outside struct {
	source *wrap.Source
	unread chan os.Signal      // what is caught for not killing this process
	pass   chan syscall.Signal // for the workers: what they have not had
	runs   atomic.Bool         // there are workers to pass it to
	kill   chan struct{}       // closed by the second Ctrl-C
	deaf   chan struct{}       // closed when workers that ignore a launcher's SIGTERM are out of time
	stop   chan struct{}
	wg     sync.WaitGroup

	joining context.Context
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	session *rdzv.Session
	first   *wrap.Event   // the first that ends
	had     chan struct{} // closed when there is a first, or none to come
	wake    sync.Once     // closes it
	killed  bool

	kills  time.Duration // by the launcher, so long after its SIGTERM; 0 if it does not
	doomed bool          // it has sent that
}

// deadline is when a limit that begins now is over; zero if there is none.
func deadline(now time.Time, limit time.Duration) time.Time {
	if limit == 0 {
		return time.Time{}
	}
	return now.Add(limit)
}

// listen begins to listen, and bounds the joining: zero for joinBy is no bound. kills is
// what killsAfter tells.
func listen(joinBy time.Time, kills time.Duration) *outside {
	o := &outside{
		source: wrap.Signals(slices.Concat(ending, passing)...), unread: make(chan os.Signal, 1),
		pass: make(chan syscall.Signal, maxPassed), kill: make(chan struct{}), stop: make(chan struct{}), had: make(chan struct{}),
		deaf: make(chan struct{}), kills: kills,
	}
	// Who reads our standard error may die before us, above all a launcher. Caught and not ignored, for what is
	// ignored stays so in the workers.
	signal.Notify(o.unread, syscall.SIGPIPE)
	o.joining, o.cancel = context.WithCancelCause(context.Background())
	o.wg.Go(func() { o.run(joinBy) })
	return o
}

func (o *outside) close() {
	close(o.stop)
	o.wg.Wait()
	// What comes between here and the exit must not make the exit code another one: a launcher that ends the job because
	// an agent has failed sends its SIGTERM just now.
	for _, s := range slices.Concat(ending, passing) {
		signal.Notify(o.unread, s)
	}
	o.source.Close()
	o.cancel(context.Canceled)
}

// signalled is why something ended: a signal from outside.
type signalled struct{ signal syscall.Signal }

func (s signalled) Error() string { return "ended by " + signalName(s.signal) }
func (s signalled) ExitCode() int { return codeSignal + int(s.signal) }

// errLate is why the joining ended: its time was up.
var errLate = errors.New("time is up")

func (o *outside) run(joinBy time.Time) {
	late := time.NewTimer(time.Until(joinBy))
	defer late.Stop()
	if joinBy.IsZero() {
		late.Stop()
	}
	for {
		select {
		case e := <-o.source.C:
			o.take(e)
		case <-late.C:
			o.cancel(errLate)
		case <-o.stop:
			return
		}
	}
}

// take takes in one signal.
func (o *outside) take(e wrap.Event) {
	if slices.Contains(ending, e.Signal) {
		o.end(e)
		return
	}
	if e.Shared || !o.runs.Load() {
		return // the workers have had it, or there are none
	}
	select {
	case o.pass <- e.Signal:
	default: // so many wait that one more of a kind is the same to the workers
	}
}

// maxPassed is how many signals wait while the workers are being started.
const maxPassed = 64

// end makes the first of these signals end the job, and the second Ctrl-C kill
// what is left of this agent's workers.
func (o *outside) end(e wrap.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doom(e)
	if o.first != nil {
		if e.Signal == syscall.SIGINT && !o.killed {
			o.killed = true
			close(o.kill)
		}
		return
	}
	o.first = &e
	o.wake.Do(func() { close(o.had) })
	o.cancel(signalled{e.Signal})
	if o.session != nil {
		o.tell(o.session)
	}
}

// doom gives workers that ignore the launcher's SIGTERM half of the time until its
// SIGKILL: then they are to show their stacks. One that catches it has all of it.
func (o *outside) doom(e wrap.Event) {
	if o.doomed || o.kills == 0 || e.Signal != syscall.SIGTERM || !e.Shared {
		return
	}
	o.doomed = true
	o.wg.Go(func() {
		select {
		case <-time.After(o.kills / 2):
			close(o.deaf)
		case <-o.stop:
		}
	})
}

// joined makes signals end this session from now on, also one that came just now.
func (o *outside) joined(s *rdzv.Session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.session = s
	if o.first != nil {
		o.tell(s)
	}
}

// tell says to the job, beside the listening, that this signal ended it.
func (o *outside) tell(s *rdzv.Session) {
	signal := int(o.first.Signal)
	o.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
		defer cancel()
		s.End(ctx, signal) // an error means that the store is lost, which ends the job too
	})
}

// stopFor says how to stop the workers of a job that ended for this cause: those
// that have had the signal themselves get no other.
func (o *outside) stopFor(cause error) *wrap.Stop {
	o.mu.Lock()
	defer o.mu.Unlock()
	stop := &wrap.Stop{Err: cause}
	if o.first != nil && o.first.Shared {
		stop.Delivered, stop.At = o.first.Signal, o.first.At
	}
	var v *rdzv.Verdict
	if errors.As(cause, &v) {
		stop.Stacks = v.Kind == rdzv.Straggling
	}
	return stop
}

// stopping is a context for wrap.Run that ends with the job.
func (g *agent) stopping() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	job := g.session.Context()
	context.AfterFunc(job, func() {
		cause := context.Cause(job)
		if g.place.Launcher != envmap.None && endedElsewhere(cause, g.self.ID) {
			g.outside.awaitOwn()
		}
		cancel(g.outside.stopFor(cause))
	})
	return ctx
}

// ownWait is how much later than another agent this one may get a signal that a
// launcher sends to all.
const ownWait = 200 * time.Millisecond

// endedElsewhere tells whether a signal to another agent has ended the job. Under a
// launcher the workers of this one are about to get it too, and they are to get
// it once.
func endedElsewhere(cause error, self string) bool {
	var v *rdzv.Verdict
	return errors.As(cause, &v) && v.Kind == rdzv.Ended && v.By != self
}

// awaitOwn waits for a signal that ends, a little.
func (o *outside) awaitOwn() {
	late := time.NewTimer(ownWait)
	defer late.Stop()
	select {
	case <-o.had:
	case <-late.C:
	}
}
