package tally

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rdzv/rdzv"
)

// While the store does not answer the report of how all workers have ended, it is known which ran.
func TestSettleDelayed(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	tally := &Tally{Number: 1, Settle: func([]rdzv.Worker) { close(asked); <-answer }}
	tally.Start(Process{PID: 100})
	var wg sync.WaitGroup
	wg.Go(func() { tally.End(rdzv.Worker{}) })
	<-asked
	running := make(chan []Process, 1)
	go func() { running <- tally.Running() }()
	select {
	case list := <-running:
		if len(list) > 0 {
			t.Errorf("%v run, want none", list)
		}
	case <-time.After(10 * time.Second):
		t.Error("Running waits for the answer of the store")
	}
	close(answer)
	wg.Wait()
	tally.Close()
}

// A report that becomes due while the tally is closed is made before Close returns, or not at all.
func TestProgressBeforeClose(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			closed := false
			tally := &Tally{Number: 2, Progress: func([]rdzv.Worker) {
				if closed {
					t.Error("a report after Close")
				}
			}}
			tally.End(rdzv.Worker{})
			time.Sleep(progressDelay) // both are due at the same moment
			tally.Close()
			closed = true
			synctest.Wait()
		})
	}
}

// A worker whose failure is held back has ended before that is recorded.
func TestTimesOfFailureHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := &Tally{Number: 2}
		began := time.Now()
		tally.Start(Process{Rank: 1})
		time.Sleep(3 * time.Second)
		tally.End(rdzv.Worker{Rank: 1, RanFor: rdzv.Seconds(2 * time.Second)})
		if start, _, end := tally.Times(1); !start.Equal(began) || !end.Equal(began.Add(2*time.Second)) {
			t.Errorf("it has run from %v to %v, want 2s from %v", start, end, began)
		}
		tally.Close()
	})
}
