package announce

import (
	"io"
	"strings"
	"testing"

	"rdzv/cmd/rdzv/internal/console"
)

// traceback is a screen on which a traceback is.
type traceback struct{}

func (traceback) End() bool    { return false }
func (traceback) Wrote(string) {}
func (traceback) Shows(lines []string, others int) bool {
	return others > 0 && strings.Join(lines, "|") == "Traceback (most recent call last):|E: x"
}

// A traceback that is on the screen is known, also if it followed a progress bar on its line.
func TestTracebackIsShown(t *testing.T) {
	c := console.To(io.Discard, console.Destination{})
	c.Follow(traceback{})
	for first, want := range map[string]bool{
		"Traceback (most recent call last):":         true,
		" 50%|##|Traceback (most recent call last):": true,
		"Fatal Python error: Aborted":                false,
	} {
		if got := shows(c, []string{first, "E: x"}); got != want {
			t.Errorf("%q: %t, want %t", first, got, want)
		}
	}
}
