package agent

import (
	"fmt"
	"time"

	"rdzv/internal/jsontext"
	"rdzv/rdzv"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/stacks"
)

// SchemaVersion is the version of the JSON form of events. A new version renames or removes a field
// or an event, or changes a meaning; new fields and events do not need one.
const SchemaVersion = 1

// MarshalEvent returns the JSON form of an event: one object without newline, with the members "v"
// ([SchemaVersion]), "time" (RFC 3339, UTC), "type", and "event" with the fields of its type, which
// docs/reference/events.md lists. Durations are in seconds, ranks and numbers that are not known
// are -1, and a signal is its name. It holds no secret.
func MarshalEvent(at time.Time, e Event) ([]byte, error) {
	b, err := jsontext.Marshal(struct {
		Version int       `json:"v"`
		Time    time.Time `json:"time"`
		Type    string    `json:"type"`
		Event   any       `json:"event"`
	}{SchemaVersion, at.UTC(), e.Type(), inWords(e)})
	if err != nil {
		return nil, fmt.Errorf("cannot encode event %q: %w", e.Type(), err)
	}
	return b, nil
}

// inWords is an event with what its JSON form says besides its fields: what its String method
// returns, and what is too large for one line otherwise.
func inWords(e Event) any {
	switch e := e.(type) {
	case Searching:
		return searchingWords{e.String(), e.Waited.Seconds(), e, e.Groups()}
	case Stalled:
		return stalledWords{
			e, e.Stall.String(), placesOf(e.Stacks.Groups), e.Stacks.NCCL, e.Stacks.Problems,
		}
	case AttemptFailed:
		return attemptWords{e, e.Verdict.Told(), e.Verdict.PID, e.Verdict.Code, e.Verdict.RanFor}
	}
	return e
}

type searchingWords struct {
	Text          string  `json:"text"`           // the reason in one line
	WaitedSeconds float64 `json:"waited_seconds"` // since the search began
	meet.Searching
	Tried []meet.Tried `json:"tried,omitempty"` // the addresses that were tried
}

type stalledWords struct {
	Stalled
	Text string `json:"text"` // the fields above in words
	// groups of ranks with the same stack, the largest group first
	Places []place `json:"stacks"`
	// the report of NCCL before 2.28.7 as it is, a text of some lines
	NCCL string `json:"nccl_report,omitempty"`
	// what could not be determined, such as Python stacks without py-spy
	Problems []stacks.Problem `json:"problems,omitempty"`
}

// place is where ranks are that are at the same place.
type place struct {
	Ranks []int    `json:"ranks"` // ranks of the group
	Hosts []string `json:"hosts"` // their nodes
	// what the main thread of the first rank is doing in the kernel
	Does   string   `json:"does"`
	Python []string `json:"python,omitempty"` // its Python stack, the innermost call first
}

func placesOf(groups []stacks.Group) []place {
	places := make([]place, len(groups))
	for i, g := range groups {
		p := place{Ranks: g.Ranks(), Does: g.Workers[0].Main.Does, Python: g.Workers[0].Python}
		for i, w := range g.Workers {
			if i == 0 || w.Host != g.Workers[i-1].Host {
				p.Hosts = append(p.Hosts, w.Host)
			}
		}
		places[i] = p
	}
	return places
}

// attemptWords has the verdict's fields, some also if there is nothing to say.
type attemptWords struct {
	AttemptFailed
	rdzv.ToldVerdict
	PID  int          `json:"pid"`         // its process ID; 0 if it could not be started
	Code int          `json:"exit_code"`   // `failed`: its exit code, 128+n for signal n
	Took rdzv.Seconds `json:"ran_seconds"` // `failed`: from its start to its end
}

// describeStall is the default of Config.DescribeStall.
func describeStall(e Stalled) string {
	text, err := jsontext.Indent(inWords(e))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
