package record

import (
	"fmt"
	"strings"
	"time"
)

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
