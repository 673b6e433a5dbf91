package tee

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fakeClock is a clock on which writes to a file take a second for 40 MB, and a sleep takes a bit
// more than asked for. It knows how long the sleeps were, and how many bytes had been written before
// each one.
type fakeClock struct {
	time   time.Time
	file   *os.File
	size   int64 // of the file
	slept  time.Duration
	sleeps []int64
}

func (c *fakeClock) now() time.Time {
	before := c.size
	if info, err := c.file.Stat(); err == nil {
		c.size = info.Size()
	}
	c.time = c.time.Add(time.Microsecond + time.Duration(c.size-before)*time.Second/40e6)
	return c.time
}

func (c *fakeClock) sleep(d time.Duration) {
	d += 100 * time.Microsecond
	c.time, c.slept = c.time.Add(d), c.slept+d
	c.sleeps = append(c.sleeps, c.size)
}

// launcherScreen returns a Screen that writes to a file as to the pseudoterminal of a launcher.
func launcherScreen(t *testing.T) (*Screen, *fakeClock) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	clock := &fakeClock{time: time.Unix(1e9, 0), file: file}
	return &Screen{fd: int(file.Fd()), max: bulkBuf, rests: &rests{now: clock.now, sleep: clock.sleep}}, clock
}

// manyLines returns lines of different lengths.
func manyLines(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "line %d %s\n", i, strings.Repeat("x", 40+7*i%60))
	}
	return b.Bytes()
}

// show writes text as a Tee does.
func (s *Screen) show(t *testing.T, text []byte) {
	t.Helper()
	l := lines{tag: "[3 node1] ", hold: true, max: s.max}
	if errno := l.write(s, text, true); errno != 0 {
		t.Fatal(errno)
	}
}

// Output in bulk is slowed down by at most 5 %, after the 50 ms that are saved at first.
func TestBulkRarelyRests(t *testing.T) {
	s, clock := launcherScreen(t)
	text, began := manyLines(1000), clock.time
	for range 400 {
		s.show(t, text)
	}
	took := clock.now().Sub(began)
	if most := took/20 + 50*time.Millisecond; clock.slept > most {
		t.Errorf("%v of %v are rests, want at most %v", clock.slept, took, most)
	}
}

// TestBurstsRest: the lines of a traceback can be read before more are written than one read
// returns, also a second after output in bulk.
func TestBurstsRest(t *testing.T) {
	s, clock := launcherScreen(t)
	bulk, burst := manyLines(1000), manyLines(200)
	for range 5 {
		for range 10 {
			s.show(t, bulk)
		}
		clock.time = clock.time.Add(time.Second)
		last := clock.size
		clock.sleeps = nil
		s.show(t, burst)
		for _, size := range append(clock.sleeps, clock.size) {
			if size-last > ptyRead {
				t.Fatalf("%d bytes without a rest, want at most %d", size-last, ptyRead)
			}
			last = size
		}
	}
}

// Lines that are written now and then do not wait.
func TestSlowLinesDoNotRest(t *testing.T) {
	s, clock := launcherScreen(t)
	for range 1000 {
		s.show(t, []byte("step 1 of 1000, loss 0.5\n"))
		clock.time = clock.time.Add(mostSaved / restPart)
	}
	if clock.slept > 0 {
		t.Errorf("rests of %v", clock.slept)
	}
}

// A write has whole lines, and one that has to be readable at once is a single chunk of the kernel's.
func TestFirstLines(t *testing.T) {
	long := strings.Repeat("x", 2*ptyBuf)
	for _, c := range []struct {
		lines string
		want  int
	}{
		{"a\nb\n", 4}, {"a\nb", 2}, {"a", 1}, {long, len(long)}, {long + "\na\n", len(long) + 1},
		{"a\n" + long + "\n", 2}, {strings.Repeat("0123456789\n", 100), 93 * 11},
	} {
		if got := firstLines([]byte(c.lines)); got != c.want {
			t.Errorf("%d bytes of %.20q (%d bytes), want %d", got, c.lines, len(c.lines), c.want)
		}
	}
}

// pseudoterminal returns the end of a new one to which a task would write, with flags for its output.
func pseudoterminal(t *testing.T, oflag uint32) (fd int) {
	t.Helper()
	term, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Close() })
	if err := unix.IoctlSetPointerInt(int(term.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	slave, _, errno := syscall.Syscall(syscall.SYS_IOCTL, term.Fd(), unix.TIOCGPTPEER,
		syscall.O_RDWR|syscall.O_NOCTTY)
	if errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { syscall.Close(int(slave)) })
	termios, err := unix.IoctlGetTermios(int(slave), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	termios.Oflag = oflag
	if err := unix.IoctlSetTermios(int(slave), unix.TCSETS, termios); err != nil {
		t.Fatal(err)
	}
	return int(slave)
}

// TestWhoRests: only what a launcher reads from a pseudoterminal has rests.
func TestWhoRests(t *testing.T) {
	term := pseudoterminal(t, unix.OPOST)
	from, to := pipe(t, false)
	defer syscall.Close(from)
	defer syscall.Close(to)
	for _, c := range []struct {
		name    string
		fd      int
		relayed bool
		want    bool
	}{
		{"a launcher's pseudoterminal", term, true, true},
		{"a terminal", term, false, false},
		{"a launcher's pipe", to, true, false},
	} {
		if got := NewScreen(c.fd, c.relayed).rests != nil; got != c.want {
			t.Errorf("%s: rests %t, want %t", c.name, got, c.want)
		}
	}
}

// TestProcessing: processing of output that changes nothing is switched off on a launcher's
// pseudoterminal, and only there.
func TestProcessing(t *testing.T) {
	for _, c := range []struct {
		name    string
		oflag   uint32
		relayed bool
		want    uint32
	}{
		{"Open MPI's", unix.OPOST, true, 0},
		{"a launcher's that adds carriage returns", unix.OPOST | unix.ONLCR, true, unix.OPOST | unix.ONLCR},
		{"a terminal", unix.OPOST, false, unix.OPOST},
	} {
		term := pseudoterminal(t, c.oflag)
		NewScreen(term, c.relayed)
		termios, err := unix.IoctlGetTermios(term, unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if termios.Oflag != c.want {
			t.Errorf("%s: c_oflag %#o, want %#o", c.name, termios.Oflag, c.want)
		}
	}
}
