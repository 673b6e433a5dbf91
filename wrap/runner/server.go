package runner

import (
	"os"
	"slices"
	"sync"
	"time"

	"rdzv/wrap"
)

// server is a runner at work. One goroutine has its state.
type server struct {
	socket  *socket
	streams [3]*os.File
	source  *wrap.Source
	tree    *attempt // that runs; nil if none does
	answers sync.WaitGroup
}

// serve is Serve, after Hello.
func (s *server) serve() (code, turn int, err error) {
	frames := make(chan frame)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(frames)
		for {
			f, err := s.socket.receive()
			if err != nil {
				return
			}
			frames <- f
		}
	})
	defer func() {
		s.socket.close()
		for f := range frames {
			closeAll(f.files)
		}
		reading.Wait()
		s.answers.Wait()
	}()
	for {
		select {
		case f, ok := <-frames:
			if !ok || s.take(&f) != nil {
				s.abandon()
				return CodeLost, 0, ErrAgent
			}
			if f.kind == exit {
				s.abandon() // nothing runs
				return s.exitCode(&f)
			}
		case e := <-s.source.C:
			s.signalled(e)
		case <-s.tree.overdue():
			s.tree.stop()
		case <-s.tree.ended():
			s.tree = nil
		}
	}
}

func (s *server) exitCode(f *frame) (code, turn int, err error) {
	var o exitOrder
	if err := f.decode(&o); err != nil {
		return CodeLost, 0, ErrAgent
	}
	return o.Code, o.Turn, nil
}

// abandon kills what runs.
func (s *server) abandon() {
	if s.tree != nil {
		s.tree.kill()
		<-s.tree.ended()
	}
}

// take carries out an order. An error is one of the protocol, after which there is no other order.
func (s *server) take(f *frame) error {
	switch t := s.tree; f.kind {
	case runTree:
		if t != nil {
			<-t.ended() // the agent knows that it ends
		}
		return s.run(f)
	case readFile, remaining:
		return s.answer(f)
	case stopTree:
		var o stopOrder
		err := f.decode(&o)
		if err == nil && t != nil {
			t.end(o)
		}
		return err
	case sendSignal:
		var m signalMessage
		err := f.decode(&m)
		if err == nil && t != nil {
			t.pass(m.event())
		}
		return err
	default:
		if t != nil {
			t.take(f.kind)
		}
		return nil
	}
}

// signalled handles a signal to this process.
func (s *server) signalled(e wrap.Event) {
	ends := slices.Contains(endSignals, e.Signal)
	if ends {
		_ = s.socket.send(gotSignal, messageOf(e)) // or the agent is lost
	}
	switch {
	case s.tree == nil: // there are no workers
	case ends:
		s.tree.received(e)
	default:
		s.tree.pass(e)
	}
}

// ownWait is how long a runner waits for its own signal when the agent has received one that went
// to all processes: until then the workers have not.
const ownWait = time.Second
