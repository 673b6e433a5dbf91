package integration

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bulk is how much is written, in bytes: with a pattern that repeats at no power of two.
const bulk = 400 << 20

// pour is a program that writes bulk bytes of the pattern to its standard error.
const pour = `yes 0123456789abcdefghijklmnopqrstuvwxyz | head -c ` // as many as said

// Whatever a worker writes to standard error, which passes through rdzv, arrives, unchanged, at 200 MB/s and more.
func TestStderrIsUnchanged(t *testing.T) {
	p := newPlace(t)
	script := pour + strconv.Itoa(bulk) + ` >&2`
	cmd := exec.Command(*rdzvBin, "exec", "--", "sh", "-c", script)
	cmd.Env, cmd.Dir = p.env, p.root
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	n := checkPattern(t, r)
	took := time.Since(began)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if n != bulk {
		t.Errorf("%d bytes have come, want %d", n, bulk)
	}
	t.Logf("%.0f MB/s", float64(n)/1e6/took.Seconds())
}

// checkPattern reads to the end and returns how many bytes were of the pattern.
func checkPattern(t *testing.T, r io.Reader) (n int) {
	t.Helper()
	line := []byte("0123456789abcdefghijklmnopqrstuvwxyz\n")
	pattern := bytes.Repeat(line, 4096)
	b := make([]byte, len(pattern)-len(line))
	for {
		got, err := r.Read(b)
		at := n % len(line)
		if !bytes.Equal(b[:got], pattern[at:at+got]) {
			t.Fatalf("other bytes behind byte %d", n)
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

// A reader that closes its end ends the writer by SIGPIPE, as without rdzv.
func TestClosedReader(t *testing.T) {
	for name, script := range map[string]string{
		"stdout": `"$0" exec -- yes | head -n 1; echo "codes ${PIPESTATUS[*]}"`,
		"stderr": `"$0" exec -- sh -c 'yes >&2' 2>&1 >/dev/null | head -n 1; echo "codes ${PIPESTATUS[*]}"`,
	} {
		t.Run(name, func(t *testing.T) {
			job := newPlace(t).start("bash", "-c", script, *rdzvBin)
			job.waitFor("codes 141 0")
			job.code()
		})
	}
}

// A full disk behind standard error is the reader's own trouble.
func TestFullDisk(t *testing.T) {
	job := newPlace(t).start("bash", "-c", `"$0" exec -- sh -c 'echo to nobody >&2; exit 4' 2>/dev/full; echo "code $?"`, *rdzvBin)
	job.waitFor("code 4")
	job.code()
}

// A reader that does not read holds nobody up: neither the end of the job nor the report.
func TestReaderThatDoesNotRead(t *testing.T) {
	for name, capture := range map[string][]string{"captured": nil, "direct": {"--no-capture"}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close() // nobody reads from it
			line := direct(p, 4, append([]string{"--grace", "1s"}, capture...), actor("blab", p.dir("job")))
			cmd := exec.Command(line[0], line[1:]...)
			cmd.Env, cmd.Dir, cmd.Stderr = p.env, p.root, w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			ended := make(chan struct{})
			go func() { defer close(ended); _ = cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Errorf("the job hangs; %d bytes stand in the pipe", inPipe(r))
				_ = cmd.Process.Kill()
				<-ended
			}
			if code := cmd.ProcessState.ExitCode(); code != workerCode {
				t.Errorf("rdzv ended with %d, want %d", code, workerCode)
			}
			if inPipe(r) < 60<<10 {
				t.Errorf("the pipe was not full: %d bytes", inPipe(r))
			}
		})
	}
}

func inPipe(r *os.File) (n int) {
	raw, err := r.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return n
}
