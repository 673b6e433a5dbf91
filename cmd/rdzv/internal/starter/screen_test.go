package starter

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdzv/cmd/rdzv/internal/console"
)

// shownOn is a screen that leads to a file, and what has been shown.
func shownOn(t *testing.T, tag func(int, string) string) (*screen, func() string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return newScreen(file, console.Setting{}, tag), func() string {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// until waits until something is shown.
func until(t *testing.T, shown func() string, want string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); shown() != want; {
		if time.Now().After(end) {
			t.Fatalf("%q is shown, want %q", shown(), want)
		}
		time.Sleep(time.Millisecond)
	}
}

func put(t *testing.T, s *screen, rank int, text string) {
	t.Helper()
	if err := s.write(source{rank % 2, 1, rank}, fmt.Sprint("node", rank%2), []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// The lines of workers are shown whole, and each line has its tag, however they are written.
func TestScreenKeepsLines(t *testing.T) {
	tags := map[string]func(int, string) string{
		"none": nil, "rank and host": func(rank int, host string) string { return fmt.Sprintf("[%d %s] ", rank, host) },
	}
	for name, tag := range tags {
		t.Run(name, func(t *testing.T) {
			src := rand.New(rand.NewPCG(1, 2))
			s, shown := shownOn(t, tag)
			const ranks, lines = 5, 200
			rests, want := make([]string, ranks), map[string]bool{}
			for rank := range ranks {
				for i := range lines {
					line := fmt.Sprintf("%d:%d:%s\n", rank, i, strings.Repeat("x", src.IntN(100)))
					rests[rank] += line
					if tag != nil {
						line = tag(rank, fmt.Sprint("node", rank%2)) + line
					}
					want[line] = true
				}
			}
			for left := ranks; left > 0; {
				rank := src.IntN(ranks)
				n := min(len(rests[rank]), src.IntN(300))
				if put(t, s, rank, rests[rank][:n]); n > 0 && n == len(rests[rank]) {
					left--
				}
				rests[rank] = rests[rank][n:]
			}
			for line := range strings.Lines(shown()) {
				if !want[line] {
					t.Errorf("%q is shown, or shown twice", line)
				}
				delete(want, line)
			}
			if len(want) > 0 {
				t.Errorf("%d lines are missing", len(want))
			}
		})
	}
}

// The beginning of a line is shown soon, and once.
func TestPartsAreShown(t *testing.T) {
	s, shown := shownOn(t, nil)
	put(t, s, 0, "name? ")
	until(t, shown, "name? ")
	put(t, s, 0, "Ada\n")
	until(t, shown, "name? Ada\n")
}

// Another worker's line ends the one that has begun, and the rest of that has a line, and a tag, of
// its own. Meanwhile the beginning of a further line waits.
func TestPartsOfSeveral(t *testing.T) {
	s, shown := shownOn(t, func(rank int, _ string) string { return fmt.Sprintf("[%d] ", rank) })
	put(t, s, 0, "10%")
	until(t, shown, "[0] 10%")
	put(t, s, 1, "20%")
	put(t, s, 2, "done\n")
	until(t, shown, "[0] 10%\n[2] done\n[1] 20%")
	put(t, s, 0, " 30%\n")
	until(t, shown, "[0] 10%\n[2] done\n[1] 20%\n[0]  30%\n")
}

// At the end what is held is shown, and ended. A console learns that it has to begin a line.
func TestEndOfOutput(t *testing.T) {
	s, shown := shownOn(t, nil)
	put(t, s, 0, "last")
	s.flush(1)
	put(t, s, 0, " words")
	s.flush(-1)
	until(t, shown, "last words\n")
	put(t, s, 1, "bar")
	until(t, shown, "last words\nbar")
	if !s.End() || s.End() {
		t.Error("the screen does not say, once, that a line has not ended")
	}
}

// If nobody reads what is shown, its worker is to know.
func TestUnreadScreen(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	s := newScreen(write, console.Setting{}, nil)
	put(t, s, 0, "one\n")
	read.Close()
	if s.write(source{}, "node1", []byte("two\n")) == nil {
		t.Error("no error after the reader has gone")
	}
}
