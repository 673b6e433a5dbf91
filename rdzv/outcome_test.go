package rdzv

import (
	"testing"

	"rdzv/rdzv/internal/record"
)

// The exit code of a job that a signal ended depends on how the workers reacted.
func TestEndedCode(t *testing.T) {
	const term = 15
	for name, c := range map[string]struct {
		workers []Worker
		want    int
	}{
		"none had started":     {nil, 128 + term},
		"all succeeded":        {[]Worker{{}, {}}, 128 + term},
		"one was terminated":   {[]Worker{{}, {Signal: term}}, 128 + term},
		"one had to be killed": {[]Worker{{}, {Signal: 9, Stopped: true}}, 128 + term},
		"one exited":           {[]Worker{{}, {Code: 3}, {Code: 4}}, 3},
		"one crashed":          {[]Worker{{Signal: 11}, {Code: 4}}, 128 + 11},
	} {
		t.Run(name, func(t *testing.T) {
			if got := record.EndedCode(term, []Outcome{{Workers: c.workers}, {}}); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
