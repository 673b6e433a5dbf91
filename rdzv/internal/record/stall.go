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

// String returns a line for people: "stalled for 15m0s (--stall-timeout): rank 5 on node2 is
// behind (its stack differs from the other 7); NCCL: ...".
func (s Stall) String() string {
	who := fmt.Sprintf("rank %d", s.Rank)
	if s.Host != "" {
		who += " on " + s.Host
	}
	text := s.Reason
	switch {
	case s.Rank == Unknown:
	case s.Traceback != "":
		text = who + " printed a traceback and is still running: " + s.Traceback
	case s.Reason != "":
		text = fmt.Sprintf("%s is behind (%s)", who, s.Reason)
	default:
		text = who + " is behind"
	}
	switch {
	case !strings.HasPrefix(s.Collectives, ByNCCL):
	case text == "":
		text = s.Collectives
	default:
		text += "; " + s.Collectives
	}
	return fmt.Sprintf("stalled for %v (--stall-timeout): %s", s.Silent.Rounded(), text)
}

// ByNCCL begins Stall.Collectives if NCCL has reported something.
const ByNCCL = "NCCL: "
