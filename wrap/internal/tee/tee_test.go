package tee

import (
	"syscall"
	"testing"
)

// Close may come when the last chunk has been shown but is not finished yet: there is nothing to
// give up later.
func TestCloseBeforeFinish(t *testing.T) {
	from, to := pipe(t, true)
	screen, shown := pipe(t, false)
	syscall.Close(to)
	defer syscall.Close(screen)
	defer syscall.Close(shown)
	tee := &Tee{From: from, Log: -1, Show: NewScreen(shown, false)}
	tee.open()
	tee.await(tee.turn, newPace(from, false)) // the end of the pipe
	tee.perform(tee.turn, logging)
	tee.perform(tee.turn, showing)
	late := tee.giveUp(tee.step) // as Close does
	if !tee.finish(tee.turn) {
		t.Fatal("the last chunk is not the last one")
	}
	if late(); tee.turn != 0 || tee.stage != ended {
		t.Errorf("turn %d, stage %d after the end", tee.turn, tee.stage)
	}
}

// pipe returns both ends of a pipe. The first one can be non-blocking.
func pipe(t *testing.T, nonBlocking bool) (from, to int) {
	t.Helper()
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetNonblock(ends[0], nonBlocking); err != nil {
		t.Fatal(err)
	}
	return ends[0], ends[1]
}
