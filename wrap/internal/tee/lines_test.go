package tee

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// writes is a writer that keeps each write.
type writes []string

func (w *writes) write(b []byte) (written int, errno syscall.Errno) {
	*w = append(*w, string(b))
	return len(b), 0
}

// TestLines: what is written when a stream arrives in pieces.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxHeld)
	for _, c := range []struct {
		name   string
		lines  lines
		pieces []string
		want   []string
	}{
		{"a tag before each line", lines{tag: "[3] ", hold: true},
			[]string{"a\nb\n", "\n"}, []string{"[3] a\n[3] b\n", "[3] \n"}},
		{"a line in pieces", lines{tag: "[3] ", hold: true},
			[]string{"a", "b", "c\nd", "e\n"}, []string{"[3] abc\n", "[3] de\n"}},
		{"a carriage return is no end of a tagged line", lines{tag: "[3] ", hold: true},
			[]string{"\r1%", "\r2%\r", "done\n"}, []string{"[3] \r1%\r2%\rdone\n"}},
		{"an incomplete last line gets its end", lines{tag: "[3] ", hold: true},
			[]string{"a\nb"}, []string{"[3] a\n[3] b\n"}},
		{"without holding, parts of a line are shown at once", lines{tag: "[3] "},
			[]string{"\r1%", "\r2%", "\ra\nb", "c"}, []string{"[3] \r1%", "\r2%", "\ra\n[3] b", "c"}},
		{"untagged, on a terminal, a carriage return shows a progress bar",
			lines{hold: true, returns: true},
			[]string{"\r1%", "\r2%", "\r3%\nx", "\ry"}, []string{"\r", "1%\r", "2%\r3%\n", "x\ry\n"}},
		{"with a tag, on a terminal, each state of a progress bar has it",
			lines{tag: "[3] ", hold: true, returns: true},
			[]string{"\r1%", "\r2%", "\r3%\r4%\nx", "\ry\r\n"},
			[]string{"[3] \r", "[3] 1%\r", "[3] 4%\n", "[3] y\r\n"}},
		{"no longer writes than max, except for a longer line", lines{tag: "[3] ", hold: true, max: 12},
			[]string{"a\nb\nc\n", "0123456789abc\nd\n"},
			[]string{"[3] a\n[3] b\n", "[3] c\n", "[3] 0123456789abc\n", "[3] d\n"}},
		{"a line that is too long to be held is shown in parts", lines{tag: "[3] ", hold: true},
			[]string{long, "y", "z\na\n"}, []string{"[3] " + long + "y", "z\n[3] a\n"}},
		{"without a tag too", lines{hold: true, max: 12},
			[]string{"a\nb", "\nc\nd\ne\nf\ng\n", "0123456789abc\nd\ne"},
			[]string{"a\n", "b\nc\nd\ne\nf\ng\n", "0123456789abc\n", "d\ne\n"}},
		{"nothing", lines{tag: "[3] ", hold: true}, []string{""}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.lines.max == 0 {
				c.lines.max = 64 << 10
			}
			var got writes
			for i, piece := range c.pieces {
				if errno := c.lines.write(&got, []byte(piece), i == len(c.pieces)-1); errno != 0 {
					t.Fatal(errno)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("writes %.200q, want %.200q", got, c.want)
			}
		})
	}
}

// TestEraser: what follows a progress bar on a terminal begins on an empty line.
func TestEraser(t *testing.T) {
	s := Screen{terminal: true}
	for _, c := range []struct {
		write string
		want  int
	}{
		{"[3] 10%\r", 0}, {"[3] 100%\r", 0}, {"[1] a\n", 8}, {"[1] b\n", 0}, {"[3] █\r", 0},
		{"[3] 12%\n", 0}, {"a\n10%\r", 0}, {"b\n", 3}, {"10%\r", 0}, {"1", 3},
		{"\x1b[32m[3]\x1b[m 1%\r", 0}, {"\x1b[32m[3]\x1b[m 20%\r", 0}, {"ab\n", 7},
	} {
		if got := s.eraser([]byte(c.write)); got != c.want {
			t.Errorf("before %q %d columns are erased, want %d", c.write, got, c.want)
		}
	}
	if s.terminal = false; s.eraser([]byte("10%\r"))+s.eraser([]byte("a\n")) > 0 {
		t.Error("a file gets spaces")
	}
}

// TestLinesKeepBytes: however a stream is cut, every line is written once, as it is, after its tag.
func TestLinesKeepBytes(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var text strings.Builder
		for range src.IntN(300) {
			length := src.IntN(1 + src.IntN(9000))
			text.WriteString(strings.Repeat("\rx", length/2) + "\n")
		}
		tag := []string{"", "[3] "}[src.IntN(2)]
		l := lines{tag: tag, hold: src.IntN(2) == 0, returns: tag == "" && src.IntN(2) == 0, max: pipeBuf}
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		screen := NewScreen(int(file.Fd()), false)
		for rest := []byte(text.String()); ; {
			n := min(len(rest), src.IntN(20000))
			if errno := l.write(screen, rest[:n], n == len(rest)); errno != 0 {
				t.Fatal(errno)
			}
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
		}
		got, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		var want strings.Builder
		for line := range strings.Lines(text.String()) {
			want.WriteString(tag + line)
		}
		if string(got) != want.String() {
			t.Fatalf("%+v: %d bytes were written, or others, want %d", l, len(got), want.Len())
		}
	}
}

// What counts as shown is what is of the stream: neither the tags nor the end that is added to its
// last line.
func TestShownBytes(t *testing.T) {
	for _, tag := range []string{"", "[3] "} {
		for _, text := range []string{"one\ntwo\n", "one\ntwo"} {
			l := lines{tag: tag, hold: true, max: pipeBuf}
			if errno := l.write(&writes{}, []byte(text), true); errno != 0 {
				t.Fatal(errno)
			}
			if l.shown != int64(len(text)) {
				t.Errorf("tag %q: %d bytes of %q are shown", tag, l.shown, text)
			}
		}
	}
}
