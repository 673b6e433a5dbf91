package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/proctest"
)

// A signal that arrives after the job has ended, before rdzv exits, does not change the exit code.
func TestSignalsBeforeExit(t *testing.T) {
	proctest.CatchIgnored()
	t.Parallel()
	dir := t.TempDir()
	report := filepath.Join(dir, "report")
	if err := syscall.Mkfifo(report, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(report, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	fillPipe(t, pipe) // rdzv writes its report last, and blocks

	args := []string{"exec", "--report", report, "--", "sh", "-c", "exit 7"}
	cmd := exec.CommandContext(t.Context(), "rdzv", args...)
	cmd.Env = baseEnv(dir)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if want := "rank 0 failed first"; !strings.Contains(line, want) {
		t.Errorf("the first line of stderr is %q, %v; want %q in it", line, err, want)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range 100 { // the first few arrive before the agent has left the job
		<-tick.C
		cmd.Process.Signal(syscall.SIGINT)
	}
	go io.Copy(io.Discard, pipe)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("rdzv ended with %v, want exit status 7", err)
	}
}

// fillPipe writes to a pipe until it is full.
func fillPipe(t *testing.T, pipe *os.File) {
	t.Helper()
	if err := pipe.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := pipe.Write(make([]byte, 4096)); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
