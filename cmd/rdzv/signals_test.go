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

// A signal that comes between the end of the job and the end of rdzv does not change the exit code.
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
	fill(t, pipe) // rdzv, which writes its report last, has to wait

	cmd := exec.CommandContext(t.Context(), "rdzv", "exec", "--report", report, "--", "sh", "-c", "exit 7")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "GORACE=" + noRaceNap}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stderr).ReadString('\n'); !strings.Contains(line, "rank 0 failed first") {
		t.Errorf("rdzv printed %q, %v", line, err)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range 100 { // the first few come before the agent has left the job
		<-tick.C
		cmd.Process.Signal(syscall.SIGINT)
	}
	go io.Copy(io.Discard, pipe)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("rdzv ended with %v; want exit status 7", err)
	}
}

// fill writes to a pipe until it is full.
func fill(t *testing.T, pipe *os.File) {
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
