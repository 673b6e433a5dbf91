package wrap

import (
	"math"
	"testing"
	"time"
)

// The time in which processes are to die begins anew when some have, not when others are created.
func TestKillerIsOver(t *testing.T) {
	k := killer{fewest: math.MaxInt}
	const almost = killWait - time.Millisecond
	for _, c := range []struct {
		after time.Duration
		left  int
		over  bool
	}{
		{0, 9, false},
		{almost, 7, false},
		{2 * almost, 8, false},
		{almost + killWait, 8, true},
		{almost + killWait, 6, false},
	} {
		if over := k.isOver(c.after, c.left); over != c.over || k.found != c.left {
			t.Errorf("%d left after %v: over %t, found %d; want %t", c.left, c.after, over, k.found, c.over)
		}
	}
}
