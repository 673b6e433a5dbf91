package tee

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// copierEnv makes the test binary copy its stdin to descriptor 3, its log.
const copierEnv = "TEE_TEST_COPIER"

func TestMain(m *testing.M) {
	if os.Getenv(copierEnv) != "" {
		copier()
		return
	}
	os.Exit(m.Run())
}

func copier() {
	_ = syscall.SetNonblock(0, true)
	t := &Tee{From: 0, Log: 3, Lost: func(reason syscall.Errno, bytes int64) {
		fmt.Println("lost", bytes, reason)
	}}
	t.Start()
	<-t.done
}

// A process that is stopped while it writes to a log, for longer than the log may take, has not
// waited for it.
func TestStoppedWhileLogging(t *testing.T) {
	text := strings.Repeat("text", 100<<10)
	read, log, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), copierEnv+"=1")
	cmd.ExtraFiles = []*os.File{log}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stdin = &said, strings.NewReader(text)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log.Close()
	first := make([]byte, 1)
	if _, err := io.ReadFull(read, first); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // until the log is full, and it waits in a write
	stop := func(s syscall.Signal) { _ = cmd.Process.Signal(s) }
	stop(syscall.SIGSTOP)
	time.Sleep(LogWait + time.Second)
	stop(syscall.SIGCONT)
	time.Sleep(LogWait / looksPerLimit / 2)
	logged, errRead := io.ReadAll(read)
	err = cmd.Wait()
	if err != nil || errRead != nil || said.Len() > 0 || string(first)+string(logged) != text {
		t.Errorf("%v, %v; it has logged %d bytes of %d, and said %q", err, errRead,
			len(first)+len(logged), len(text), said.String())
	}
}

// Close may come when the last chunk has been shown but is not finished yet: there is nothing to
// give up later.
func TestCloseBeforeFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		tee.giveUpAfter(showWait) // as Close does
		if !tee.finish(tee.turn) {
			t.Fatal("the last chunk is not the last one")
		}
		time.Sleep(2 * showWait)
		synctest.Wait()
		if tee.turn != 0 || tee.stage != ended {
			t.Errorf("turn %d, stage %d after the end", tee.turn, tee.stage)
		}
	})
}

// A write is given up when it has not ended after a limit, in which nothing is read: each time that
// something is, the limit begins anew.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := pipe(t, true)
		screen, shown := pipe(t, false)
		for _, fd := range []int{to, screen, shown} {
			defer syscall.Close(fd)
		}
		tee := &Tee{From: from, Log: -1, Show: NewScreen(shown, false)}
		tee.open()
		tee.closing, tee.stage = true, showing
		begun := time.Now()
		tee.giveUpAfter(showWait)
		time.Sleep(showWait * 3 / 4)
		tee.Show.writes.Add(1)
		for tee.hasTurn(0) {
			time.Sleep(time.Millisecond)
		}
		const least, most = showWait * 7 / 4, showWait * 2
		if took := time.Since(begun); took < least-showWait/looksPerLimit || took > most {
			t.Errorf("it was given up after %v, want %v to %v", took, least, most)
		}
		<-tee.done
	})
}

func (t *Tee) hasTurn(turn int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn == turn
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
