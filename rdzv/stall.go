package rdzv

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// StalledCode is the exit code of a job that has ended because it stalled.
const StalledCode = 119

// Stall is what is known of an attempt whose workers run and make no progress.
type Stall struct {
	Silent time.Duration `json:"silent"` // since when no worker has written anything
	// Rank and Host are those of the worker that is behind the others, Unknown and "" if no single one
	// is known to be.
	Rank int    `json:"rank"`
	Host string `json:"host,omitempty"`
	// Reason is why, or why it is not known. Collectives is what NCCL's RAS service says of the ranks,
	// or why it says nothing.
	Reason      string `json:"reason"`
	Collectives string `json:"collectives"`
}

// String returns a line for people: "no rank has written anything for 15m0s: rank 5 on node2 is
// elsewhere than all others; NCCL: ...".
func (s Stall) String() string {
	texts := []string{}
	if s.Rank != Unknown {
		who := fmt.Sprintf("rank %d", s.Rank)
		if s.Host != "" {
			who += " on " + s.Host
		}
		texts = append(texts, who+" is behind")
	}
	for _, text := range []string{s.Reason, s.Collectives} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	return fmt.Sprintf("no rank has written anything for %v: %s", s.Silent.Round(time.Second),
		strings.Join(texts, "; "))
}

// Stall ends the attempt because it makes no progress, unless it has ended already. took is how
// long its workers have run.
func (s *Session) Stall(ctx context.Context, stall Stall, took time.Duration) error {
	stall.Reason, stall.Collectives = clip(stall.Reason), clip(stall.Collectives)
	v := s.verdictOf(Stalled)
	v.Stall, v.Code, v.Took = &stall, StalledCode, took
	return s.endWith(ctx, v)
}
