package agent

import (
	"testing"
	"time"
)

func TestAfterOthers(t *testing.T) {
	for _, row := range []struct {
		agents, cores int
		want          time.Duration
	}{
		{1, 2, 0}, // by hand one agent has all workers of its node
		{8, 64, 109375 * time.Nanosecond},
		{4, 2, 1500 * time.Microsecond},
		{64, 2, 31500 * time.Microsecond},
		{4096, 2, longestAfter},
	} {
		if got := afterOthers(row.agents, row.cores); got != row.want {
			t.Errorf("%d agents on %d cores: %v, want %v", row.agents, row.cores, got, row.want)
		}
	}
}
