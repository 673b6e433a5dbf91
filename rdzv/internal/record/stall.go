package record

import (
	"fmt"
	"strings"
)

// Stall describes an attempt whose workers run and make no progress. It is part of the verdict if
// the attempt ends because of that.
type Stall struct {
	Silent Seconds `json:"silent_seconds"` // for how long no worker has written anything
	// the rank that is behind, or has printed a traceback; -1 if it is not known
	Rank   int    `json:"rank"`
	Host   string `json:"host,omitempty"`   // its node
	Reason string `json:"reason,omitempty"` // why that rank, or why it is not known
	// the exception of a traceback that this rank printed before the silence; it is still running, and
	// the program may have handled the exception
	Traceback string `json:"traceback,omitempty"`
	// what NCCL reports about the ranks, or that it does not answer
	Collectives string `json:"nccl,omitempty"`
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
		if s.Traceback != "" {
			texts = append(texts, who+" printed a traceback and is still running: "+s.Traceback)
		} else {
			texts = append(texts, who+" is behind")
		}
	}
	for _, text := range []string{s.Reason, s.Collectives} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	silent := s.Silent.Rounded()
	return fmt.Sprintf("no rank has written anything for %v: %s", silent,
		strings.Join(texts, "; "))
}
