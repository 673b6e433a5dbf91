package wrap

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/tee"
)

// writingStderr writes as many pseudo-random bytes to stderr as argEnv says.
var writingStderr = role("writing stderr", func() {
	n, _ := strconv.Atoi(os.Getenv(argEnv))
	src := rand.NewChaCha8([32]byte{})
	b := make([]byte, 48<<10)
	for n > 0 {
		c := b[:min(n, 1+int(src.Uint64()%uint64(len(b))))]
		src.Read(c)
		if _, err := os.Stderr.Write(c); err != nil {
			os.Exit(8)
		}
		n -= len(c)
	}
})

// TestNoByteLost writingStderr a lot through Run and compares, also into a file.
func TestNoByteLost(t *testing.T) {
	nothingLeft(t)
	const size = 256 << 20
	want := sha256.New()
	src := rand.NewChaCha8([32]byte{})
	b := make([]byte, 48<<10)
	var last []byte
	for n := size; n > 0; {
		c := b[:min(n, 1+int(src.Uint64()%uint64(len(b))))]
		src.Read(c)
		want.Write(c)
		last = append(last, c...)
		last = last[max(0, len(last)-tee.TailSize):]
		n -= len(c)
	}
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	got := sha256.New()
	read := make(chan int64)
	go func() { n, _ := io.Copy(got, r); r.Close(); read <- n }()
	w := worker(t, writingStderr, argEnv+"="+strconv.Itoa(size))
	w.Stderr, w.Capture = out, true
	begun := time.Now()
	results := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
	took := time.Since(begun)
	out.Close()
	if n := <-read; n != size || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Errorf("read %d bytes of %d, or different ones", n, size)
	}
	if !bytes.Equal(results[0].Stderr, last) {
		t.Errorf("Result.Stderr has %d other bytes", len(results[0].Stderr))
	}
	t.Logf("%.0f MB/s", float64(size)/1e6/took.Seconds())
}

// TestAppendsToFile: output is appended to what is in the file.
func TestAppendsToFile(t *testing.T) {
	nothingLeft(t)
	name := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("before\n")
	w := sh(t, "echo during >&2")
	w.Stderr, w.Capture = f, true
	mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
	f.WriteString("after\n")
	if text, _ := os.ReadFile(name); string(text) != "before\nduring\nafter\n" {
		t.Errorf("file contains %q", text)
	}
}

// TestReaderCloses: when the reader of its output closes the pipe, the worker gets SIGPIPE, or
// EPIPE if it ignores SIGPIPE.
func TestReaderCloses(t *testing.T) {
	nothingLeft(t)
	for _, row := range []struct {
		script string
		want   int
	}{
		{`yes >&2`, 128 + int(syscall.SIGPIPE)},
		{`trap "" PIPE; while echo x >&2 2>/dev/null; do :; done; exit 3`, 3},
	} {
		r, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		w := sh(t, row.script)
		w.Stderr, w.Capture = out, true
		got := make(chan Result, 1)
		go func() { r.Read(make([]byte, 100)); r.Close() }()
		run := begin(t, Tree{Workers: []Worker{w}, Ended: func(_ int, r Result) { got <- r }})
		if e := run.one(); e.ExitCode() != row.want {
			t.Errorf("%s: exit code %d, want %d", row.script, e.ExitCode(), row.want)
		}
		out.Close()
	}
}

// TestReaderDoesNotRead: Ended is called and Run returns although the pipe is full and not read.
func TestReaderDoesNotRead(t *testing.T) {
	nothingLeft(t)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer out.Close()
	w := sh(t, `(sleep 1000 >&2 &); head -c 65536 /dev/zero >&2; echo last line >&2; exit 4`)
	w.Stderr, w.Capture = out, true
	begun := time.Now()
	ended := make(chan Result, 1)
	results := mustRun(t, t.Context(), Tree{
		Workers: []Worker{w}, Ended: func(_ int, r Result) { ended <- r },
	})
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("Run returned after %v, want at most 8 s", took)
	}
	if e := <-ended; e.Code != 4 || !strings.HasSuffix(string(e.Stderr), "last line\n") {
		t.Errorf("Ended: Code %d, %d bytes of stderr, want 4 and the last line",
			e.Code, len(e.Stderr))
	}
	if results[0].Code != 4 {
		t.Errorf("Run: Code %d, want 4", results[0].Code)
	}
}

// TestReaderDoesNotReadSocket: the write to a socket blocks, as it cannot be opened again for
// non-blocking writes. Run returns nevertheless.
func TestReaderDoesNotReadSocket(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := os.NewFile(uintptr(ends[0]), "socket")
	w := sh(t, `head -c 10000000 /dev/zero >&2`)
	w.Stderr, w.Capture = out, true
	r := begin(t, Tree{Workers: []Worker{w}, Grace: 10 * time.Millisecond})
	eventually(t, "the socket is full", func() bool {
		n, err := unix.IoctlGetInt(ends[1], unix.TIOCINQ)
		return err == nil && n > 100000
	})
	r.cancel(nil)
	if e := r.one(); !e.Stopped {
		t.Errorf("exit code %d, not Stopped", e.ExitCode())
	}
	unix.Close(ends[1]) // ends the blocked write
	out.Close()
}

// TestDiskFull: the worker sees no error, and the end of its output is in the Result.
func TestDiskFull(t *testing.T) {
	nothingLeft(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	w := sh(t, `echo one >&2 || exit 9; echo two >&2 || exit 9; exit 2`)
	w.Stderr, w.Capture = full, true
	e := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})[0]
	if e.Code != 2 || string(e.Stderr) != "one\ntwo\n" {
		t.Errorf("Code %d, Stderr %q, want 2 and both lines", e.Code, e.Stderr)
	}
}

// TestDescendantKeepsStderrOpen: Ended is called, with all output of the worker, while a descendant
// keeps the pipe open. What the descendant writes later is still copied.
func TestDescendantKeepsStderrOpen(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	w := sh(t, `
		(trap "echo descendant ends >&2; exit" TERM; echo ready; while :; do sleep 0.01; done) &
		read x; echo last line >&2; exit 1`)
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer feed.Close()
	w.Stdin, w.Stdout, w.Stderr, w.Capture = in, out, out, true
	ended := make(chan Result, 1)
	r := begin(t, Tree{
		Workers: []Worker{w}, Grace: longGrace, Linger: true,
		Ended: func(_ int, r Result) { ended <- r },
	})
	l.want("ready")
	begun := time.Now()
	feed.WriteString("go\n")
	if e := <-ended; string(e.Stderr) != "last line\n" {
		t.Errorf("Result.Stderr = %q, want the last line", e.Stderr)
	}
	t.Logf("Ended was called after %v", time.Since(begun))
	l.want("last line")
	r.cancel(nil)
	r.one()
	l.want("descendant ends")
}

// TestManyFiles: many descriptors.
func TestManyFiles(t *testing.T) {
	nothingLeft(t)
	var tree Tree
	var texts []func() string
	for i := range 105 { // two each
		out, text := output(t)
		w := sh(t, fmt.Sprintf("echo %d; echo e%d >&2", i, i))
		w.Stdout, w.Stderr, w.Capture = out, out, true
		tree.Workers = append(tree.Workers, w)
		texts = append(texts, text)
	}
	for i, e := range mustRun(t, t.Context(), tree) {
		got, number := texts[i](), fmt.Sprintf("%d\n", i)
		if !strings.Contains(got, number) || string(e.Stderr) != "e"+number {
			t.Errorf("worker %d: output %q, Result.Stderr %q", i, got, e.Stderr)
		}
	}
}
