package integration

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bulk is the number of bytes that are written.
const bulk = 400 << 20

// patternLine is what a worker writes repeatedly. Its length is not a power of two.
const patternLine = "0123456789abcdefghijklmnopqrstuvwxyz"

// Whatever a worker writes to standard error passes through rdzv and arrives unchanged.
func TestStderrIsUnchanged(t *testing.T) {
	p := newPlace(t)
	script := fmt.Sprintf("yes %s | head -c %d >&2", patternLine, bulk)
	cmd := exec.Command(*rdzvBin, "exec", "--", "sh", "-c", script)
	cmd.Env, cmd.Dir = p.env, p.root
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	n := checkPattern(t, r)
	took := time.Since(start)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if n != bulk {
		t.Errorf("%d bytes have arrived, want %d", n, bulk)
	}
	t.Logf("%.0f MB/s", float64(n)/1e6/took.Seconds())
}

// checkPattern reads until the end, checks the bytes, and returns their number.
func checkPattern(t *testing.T, r io.Reader) (n int) {
	t.Helper()
	line := []byte(patternLine + "\n")
	pattern := bytes.Repeat(line, 4096)
	b := make([]byte, len(pattern)-len(line))
	for {
		got, err := r.Read(b)
		at := n % len(line)
		if !bytes.Equal(b[:got], pattern[at:at+got]) {
			t.Fatalf("after byte %d the bytes are %q, want the pattern", n, b[:min(got, len(line))])
		}
		n += got
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// If a reader closes its end, the writer gets SIGPIPE, as without rdzv.
func TestClosedReader(t *testing.T) {
	for name, script := range map[string]string{
		"stdout": `"$0" exec -- yes | head -n 1`,
		"stderr": `"$0" exec -- sh -c 'yes >&2' 2>&1 >/dev/null | head -n 1`,
	} {
		t.Run(name, func(t *testing.T) {
			job := newPlace(t).start("bash", "-c", script+`; echo "codes ${PIPESTATUS[*]}"`, *rdzvBin)
			job.waitFor("codes 141 0")
			job.checkCode(0)
		})
	}
}

// If standard error cannot be written because a disk is full, the worker is not affected.
func TestFullDisk(t *testing.T) {
	script := `"$0" exec -- sh -c 'echo text >&2; exit 4' 2>/dev/full; echo "code $?"`
	job := newPlace(t).start("bash", "-c", script, *rdzvBin)
	job.waitFor("code 4")
	job.checkCode(0)
}

// A reader that does not read does not delay the end of the job.
func TestReaderThatDoesNotRead(t *testing.T) {
	for name, capture := range map[string][]string{"captured": nil, "direct": {"--no-capture"}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close() // without having read
			defer w.Close()
			failNow := filepath.Join(p.root, "fail")
			flags := append([]string{"--grace", "1s"}, capture...)
			job := p.command(nil, direct(p, 4, flags, worker("flood", p.dir("job"), failNow)))
			job.cmd.Stderr = w
			job.begin()
			go job.wait()
			job.runsUntilFull(w)
			if err := os.WriteFile(failNow, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if !job.endsWithin(20 * time.Second) {
				t.Fatal("the job has not ended within 20s of the failure")
			}
			job.checkCode(failCode)
		})
	}
}

// runsUntilFull waits until a pipe is full, and fails the test if the process ends before.
func (c *process) runsUntilFull(w *os.File) {
	c.t.Helper()
	hasEnded := func() bool {
		select {
		case <-c.done:
			return true
		default:
			return false
		}
	}
	full := eventually(waitLimit, func() bool { return isFull(w) || hasEnded() })
	if hasEnded() {
		c.t.Fatalf("%q ended before the pipe was full (%v)", c.argv, c.cmd.ProcessState)
	}
	if !full {
		c.t.Fatalf("the pipe has not become full within %v", waitLimit)
	}
}

// isFull tells whether a write to a pipe would block. The number of bytes in the pipe does not tell
// it: each write may use a page of its own.
func isFull(w *os.File) bool {
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(w.Fd()), Events: unix.POLLOUT}}, 0)
	return err == nil && ready == 0
}
