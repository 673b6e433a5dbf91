package cadence

import (
	"slices"
	"testing"
	"time"
)

// Reports become less frequent, unless it is said how often they are wanted.
func TestNextReport(t *testing.T) {
	const m = time.Minute
	for every, want := range map[time.Duration][]time.Duration{
		0:           {5 * time.Second, 15 * time.Second, m, 5 * m, 10 * m, 15 * m},
		time.Second: {time.Second, 2 * time.Second, 3 * time.Second},
	} {
		c := Cadence{Every: every}
		var got []time.Duration
		for last := time.Duration(0); len(got) < len(want); got = append(got, last) {
			last = c.Next(last)
		}
		if !slices.Equal(got, want) {
			t.Errorf("every %v: reports after %v, want %v", every, got, want)
		}
	}
}
