package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// ending are the signals that end the job, on all nodes.
var ending = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// passing are those that reach this agent's workers and mean nothing to rdzv.
var passing = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}

// outside is what other processes, and the terminal, tell this one.
type outside struct {
	ending  chan os.Signal
	passing chan os.Signal
	pass    chan syscall.Signal // what passing brought
	stop    chan struct{}
	wg      sync.WaitGroup
}

func listen() *outside {
	o := &outside{ending: make(chan os.Signal, 4), passing: make(chan os.Signal, 16), pass: make(chan syscall.Signal), stop: make(chan struct{})}
	signal.Notify(o.ending, ending...)
	signal.Notify(o.passing, passing...)
	o.wg.Go(o.forward)
	return o
}

// forward hands on what is passed to the workers; before there are any, it is
// lost on them as it would be on a program that has not been started.
func (o *outside) forward() {
	for {
		select {
		case s := <-o.passing:
			select {
			case o.pass <- s.(syscall.Signal):
			case <-o.stop:
				return
			}
		case <-o.stop:
			return
		}
	}
}

func (o *outside) close() {
	signal.Stop(o.ending)
	signal.Stop(o.passing)
	close(o.stop)
	o.wg.Wait()
}

// signalled is why something ended: a signal from outside.
type signalled struct{ signal syscall.Signal }

func (s signalled) Error() string { return fmt.Sprintf("ended by %s", signalName(s.signal)) }
func (s signalled) ExitCode() int { return codeSignal + int(s.signal) }

// errLate is why something ended: its time was up.
var errLate = fmt.Errorf("time is up")

// until is a context that ends with the first signal, or after a time.
func (o *outside) until(limit time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var late <-chan time.Time
		if limit > 0 {
			t := time.NewTimer(limit)
			defer t.Stop()
			late = t.C
		}
		select {
		case s := <-o.ending:
			cancel(signalled{s.(syscall.Signal)})
		case <-late:
			cancel(errLate)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
	}
}
