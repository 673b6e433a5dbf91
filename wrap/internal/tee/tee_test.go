package tee

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"rdzv/wrap/internal/holder"
)

// A Tee that gives up showing what nobody reads leaves a goroutine behind. That goroutine goes on
// when somebody reads: by then the chunk has gone, which the goroutine must not need.
func TestShowsWithoutChunk(t *testing.T) {
	chunk, err := holder.NewChunk()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	from, to := pipe(t, true)
	screen, shown := pipe(t, false)
	line := append(bytes.Repeat([]byte{'x'}, 1023), '\n')
	written := bytes.Repeat(line, 60)
	fcntl(to, setPipeSize, 2*len(written))
	if n, err := syscall.Write(to, written); n != len(written) {
		t.Fatal(n, err)
	}
	syscall.Close(to)
	logged, err := syscall.Dup(int(log.Fd())) // the Tee closes it
	if err != nil {
		t.Fatal(err)
	}
	show := NewScreen(shown, true) // a pipe of one page, which is full after a few lines
	tee := &Tee{From: from, Log: logged, Show: show, Chunk: chunk,
		Lost: func(reason syscall.Errno, n int64) { t.Error("lost", reason, n) }}
	tee.Start()
	tee.Close()
	chunk.Close()

	read, buffer := []byte(nil), make([]byte, len(written))
	for len(read) < len(written) {
		n, err := syscall.Read(screen, buffer)
		if n <= 0 {
			t.Fatal(n, err)
		}
		read = append(read, buffer[:n]...)
	}
	if !bytes.Equal(read, written) {
		t.Error("what was shown is not what the worker wrote")
	}
	if text, _ := os.ReadFile(log.Name()); !bytes.Equal(text, written) {
		t.Errorf("%d bytes are in the log, want %d", len(text), len(written))
	}
}

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
	tee.await(tee.turn, newPace(from)) // the end of the pipe
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
