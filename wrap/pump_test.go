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
)

// pours writes that many pseudo-random bytes to stderr.
var pours = role("pours", func() {
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

// TestNoByteLost pours a lot through the pump and compares, also into a file.
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
		last = last[max(0, len(last)-tailSize):]
		n -= len(c)
	}
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	got := sha256.New()
	read := make(chan int64)
	go func() { n, _ := io.Copy(got, r); r.Close(); read <- n }()
	w := worker(t, pours, argEnv+"="+strconv.Itoa(size))
	w.Stderr, w.Capture = out, true
	begun := time.Now()
	results := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
	took := time.Since(begun)
	out.Close()
	if n := <-read; n != size || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Errorf("%d bytes came of %d, or others", n, size)
	}
	if !bytes.Equal(results[0].Stderr, last) {
		t.Error("another end is remembered")
	}
	t.Logf("%.0f MB/s", float64(size)/1e6/took.Seconds())
}

// TestAppendsToFile: what was in the file stays, also what others append meanwhile.
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
		t.Errorf("%q", text)
	}
}

// TestReaderGone: the worker gets SIGPIPE, or EPIPE if it ignores that, as if it wrote to the reader itself.
func TestReaderGone(t *testing.T) {
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
			t.Errorf("%s: %d, want %d", row.script, e.ExitCode(), row.want)
		}
		out.Close()
	}
}

// TestReaderStuck: nobody reads, the pipe is full; the worker's end is told and Run returns all the same.
func TestReaderStuck(t *testing.T) {
	nothingLeft(t)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer out.Close()
	w := sh(t, `(sleep 1000 >&2 &); head -c 65536 /dev/zero >&2; echo last words >&2; exit 4`)
	w.Stderr, w.Capture = out, true
	begun := time.Now()
	ended := make(chan Result, 1)
	results := mustRun(t, t.Context(), Tree{Workers: []Worker{w}, Ended: func(_ int, r Result) { ended <- r }})
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("took %v", took)
	}
	if e := <-ended; e.Code != 4 || !strings.HasSuffix(string(e.Stderr), "last words\n") {
		t.Errorf("%d, %d bytes", e.Code, len(e.Stderr))
	}
	if results[0].Code != 4 {
		t.Errorf("%+v", results[0].Code)
	}
}

// TestReaderStuckOnSocket: a socket cannot be opened anew, so the write to it hangs; the end does not.
func TestReaderStuckOnSocket(t *testing.T) {
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
		t.Errorf("%+v", e.ExitCode())
	}
	unix.Close(ends[1]) // lets the abandoned write end
	out.Close()
}

// TestDiskFull: the worker is not hurt, and the end of what it wrote is known.
func TestDiskFull(t *testing.T) {
	nothingLeft(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	w := sh(t, `echo one >&2 || exit 9; echo two >&2 || exit 9; exit 2`)
	w.Stderr, w.Capture = full, true
	if e := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})[0]; e.Code != 2 || string(e.Stderr) != "one\ntwo\n" {
		t.Errorf("%+v", e)
	}
}

// TestTerminalStaysOne: no pump before a terminal.
func TestTerminalStaysOne(t *testing.T) {
	nothingLeft(t)
	term, slave := openTerminal(t)
	w := sh(t, `[ -t 2 ] && echo a terminal >&2`)
	w.Stderr, w.Capture = slave, true
	mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
	term.want("a terminal")
}

// TestStreamHeld: descendants hold the stream; the worker's own end is told at once and with all its words, and what the
// descendants write still comes through.
func TestStreamHeld(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	w := sh(t, `(trap "echo bye >&2; exit" TERM; echo up; while :; do sleep 0.01; done) & read x; echo last words >&2; exit 1`)
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer feed.Close()
	w.Stdin, w.Stdout, w.Stderr, w.Capture = in, out, out, true
	ended := make(chan Result, 1)
	r := begin(t, Tree{Workers: []Worker{w}, Grace: ample, Linger: true, Ended: func(_ int, r Result) { ended <- r }})
	l.want("up")
	begun := time.Now()
	feed.WriteString("go\n")
	if e := <-ended; string(e.Stderr) != "last words\n" {
		t.Errorf("%q", e.Stderr)
	}
	t.Logf("told after %v", time.Since(begun))
	l.want("last words")
	r.cancel(nil)
	r.one()
	l.want("bye")
}

// TestManyFiles: more descriptors than one message holds.
func TestManyFiles(t *testing.T) {
	nothingLeft(t)
	var tree Tree
	var texts []func() string
	for i := range 210 {
		out, text := output(t)
		w := sh(t, fmt.Sprintf("echo %d; echo e%d >&2", i, i))
		w.Stdout, w.Stderr, w.Capture = out, out, true
		tree.Workers = append(tree.Workers, w)
		texts = append(texts, text)
	}
	for i, e := range mustRun(t, t.Context(), tree) {
		got := texts[i]()
		if !strings.Contains(got, fmt.Sprintf("%d\n", i)) || string(e.Stderr) != fmt.Sprintf("e%d\n", i) {
			t.Errorf("%d: %q, %q", i, got, e.Stderr)
		}
	}
}

func TestTail(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var got tail
		var want []byte
		for range 1 + src.IntN(20) {
			b := make([]byte, src.IntN(2*tailSize))
			for i := range b {
				b[i] = byte(src.Uint32())
			}
			got.write(b)
			want = append(want, b...)
		}
		if want = want[max(0, len(want)-tailSize):]; !bytes.Equal(got.bytes(), want) {
			t.Fatal("another end is remembered")
		}
	}
}
