package runner

import (
	"context"
	"os"
	"sync"
	"time"

	"rdzv/wrap"
)

// attempt is a call of wrap.Run in a runner. One goroutine, that of the server, has its state.
type attempt struct {
	socket  *socket
	tree    wrap.Tree
	cancel  context.CancelCauseFunc
	signals chan wrap.Event
	orders  map[kind]func()
	done    chan struct{} // closed when the agent has been told that Run has returned
	returns chan struct{} // delivers when Tree.Dumping has returned in the agent

	own     *wrap.Event // the first signal to end that the workers have received too
	stopped *wrap.Stop  // what ends Run, when own is known
	late    *time.Timer // while that waits for own
	files   []*os.File  // to be closed
}

// maxSignals is how many signals are queued.
const maxSignals = 64

// run begins to run a tree.
func (s *server) run(f *frame) error {
	var files []*os.File
	for _, fd := range f.files {
		files = append(files, os.NewFile(uintptr(fd), "of the agent"))
	}
	f.files = nil
	all := files
	var sp spec
	err := f.decode(&sp)
	if err == nil {
		s.tree, err = s.newAttempt(&sp, &files)
	}
	if err != nil {
		closeFiles(all)
		return err
	}
	s.tree.files = all
	s.tree.start()
	return nil
}

func (s *server) newAttempt(sp *spec, files *[]*os.File) (a *attempt, err error) {
	a = &attempt{
		socket: s.socket, signals: make(chan wrap.Event, maxSignals), done: make(chan struct{}),
		returns: make(chan struct{}, 1),
	}
	if a.tree, err = sp.tree(s.streams, files); err != nil {
		return nil, err
	}
	a.tree.Owner, a.tree.Source, a.tree.Signals = s.socket.file, s.source, a.signals
	a.setOrders()
	a.setCallbacks()
	return a, nil
}

// setOrders sets what frames without a body do, each once.
func (a *attempt) setOrders() {
	a.orders = map[kind]func(){dumped: func() { a.returns <- struct{}{} }}
	for k, to := range map[kind]*<-chan struct{}{
		startNow: &a.tree.StartNow, dumpStacks: &a.tree.DumpStacks, killTree: &a.tree.Kill,
	} {
		c := make(chan struct{})
		*to, a.orders[k] = c, sync.OnceFunc(func() { close(c) })
	}
	if a.tree.Lease != nil {
		a.orders[leaseChanged] = a.tree.Lease.Changed
	}
}

// start runs the tree.
func (a *attempt) start() {
	ctx, cancel := context.WithCancelCause(context.Background())
	a.cancel = cancel
	go func() {
		defer close(a.done)
		defer cancel(nil)
		results, err := wrap.Run(ctx, a.tree)
		if a.tree.Held != nil && a.socket.hasEnded() {
			a.tree.Held.End()
		}
		closeFiles(a.files)
		_ = a.socket.send(treeEnded, doneMessage{results != nil, failureOf(err)})
	}()
}

// ended returns a channel that is closed when Run has returned; nil without an attempt.
func (a *attempt) ended() <-chan struct{} {
	if a == nil {
		return nil
	}
	return a.done
}

// take carries out an order without a body.
func (a *attempt) take(k kind) {
	if order := a.orders[k]; order != nil {
		order()
	}
}

func (a *attempt) kill() { a.take(killTree) }

// pass sends a signal to the workers that have not received it.
func (a *attempt) pass(e wrap.Event) {
	select {
	case a.signals <- e:
	default: // so many wait that one more of a kind is the same to the workers
	}
}

// received notes a signal to end, of which the agent decides.
func (a *attempt) received(e wrap.Event) {
	if a.own == nil && e.Shared {
		a.own = &e
		if a.late != nil {
			a.stop()
		}
	}
}

// end ends the tree as ordered: at once, or when the workers have received the signal to which the
// order refers, so that they receive it once.
func (a *attempt) end(o stopOrder) {
	a.stopped = &wrap.Stop{Groups: o.Groups, DumpStacks: o.DumpStacks}
	if o.Delivered != 0 && a.own == nil {
		a.late = time.NewTimer(ownWait)
		return
	}
	a.stop()
}

// overdue delivers when end has waited for too long.
func (a *attempt) overdue() <-chan time.Time {
	if a == nil || a.late == nil {
		return nil
	}
	return a.late.C
}

// stop ends the tree.
func (a *attempt) stop() {
	if a.late != nil {
		a.late.Stop()
		a.late = nil
	}
	if a.own != nil {
		a.stopped.Delivered, a.stopped.At = a.own.Signal, a.own.At
	}
	a.cancel(a.stopped)
}

func closeFiles(list []*os.File) {
	for _, f := range list {
		_ = f.Close()
	}
}
