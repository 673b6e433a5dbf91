package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"rdzv/rdzv/agent/internal/form"
	"rdzv/rdzv/meet"
)

// SchemaVersion is the version of the JSON form of events. A new version renames or removes a field
// or an event, or changes a meaning; new fields and events do not need one.
const SchemaVersion = 1

// MarshalEvent returns the JSON form of an event: one object without newline, with the members "v"
// ([SchemaVersion]), "time" (RFC 3339, UTC), "type", and "event" with the fields of its type, which
// docs/reference/events.md lists. Durations are in seconds, ranks and numbers that are not known
// are -1, and a signal is its name. It holds no secret.
func MarshalEvent(at time.Time, e Event) ([]byte, error) {
	b, err := json.Marshal(struct {
		Version int       `json:"v"`
		Time    time.Time `json:"time"`
		Type    string    `json:"type"`
		Event   any       `json:"event"`
	}{SchemaVersion, at.UTC(), e.Type(), jsonForm(e)})
	if err != nil {
		return nil, fmt.Errorf("cannot encode event %q: %w", e.Type(), err)
	}
	return b, nil
}

// jsonForm is what the JSON form of an event is made of. Most values of package rdzv have a form of
// their own here, with other names and units than in the protocol between agents. If the protocol's
// form of the others changes, they need one too.
func jsonForm(e Event) any {
	switch e := e.(type) {
	case Searching:
		return searchingForm{
			e.String(), e.Waited.Seconds(), e.Unresolved, e.Unanswered, e.Groups(), e.Multicast, e.Heard,
			e.Hint,
		}
	case Alone:
		return aloneForm{
			e.Waited.Seconds(), e.NoBeacon, e.Store, e.Loopback, e.Hint, e.Explained,
		}
	case Waiting:
		return waitingForm{form.Roster(e.Roster), e.Waited.Seconds()}
	case WorldAgreed:
		return form.WorldOf(e.World)
	case WorkerExited:
		return form.WorkerOf(e.Worker)
	case InitProgress:
		return form.InitProgressOf(e.InitProgress)
	case Stragglers:
		return form.StragglersOf(e.Stragglers)
	case Stalled:
		return stalledFormOf(e)
	case JobEnded:
		return jobEndedForm{
			e.Job, form.VerdictOf(e.Verdict), e.Hosting, e.Leads, e.Own, e.Announce, e.StoreHost,
			e.StoreRank, e.StoreSilent.Seconds(), e.Etcd, e.StoreLost, e.NoRestart, e.Hint,
		}
	case AttemptFailed:
		return attemptFailedFormOf(e)
	case Restarting:
		return restartingForm{
			e.Attempt, e.MaxRestarts, e.Delay.Seconds(), form.LayoutOf(e.Vacant), e.Missing,
			e.Withdrawn, e.Announce,
		}
	case Settling:
		return settlingFormOf(e)
	case FailureReported:
		return failureFormOf(e.Failure)
	}
	return e // its fields have tags
}

type searchingForm struct {
	Text          string  `json:"text"`           // the reason in one line
	WaitedSeconds float64 `json:"waited_seconds"` // since the search began
	// host names that could not be resolved yet
	Unresolved []string `json:"unresolved,omitempty"`
	// host names for which the resolver has not answered yet
	Unanswered []string     `json:"unanswered,omitempty"`
	Tried      []meet.Tried `json:"tried,omitempty"` // the addresses that were tried
	// whether the agent knows no address and waits for beacons
	Multicast bool   `json:"multicast,omitempty"`
	Heard     string `json:"heard,omitempty"` // an agent whose beacon was received
	Hint      string `json:"hint,omitempty"`  // what to try
}

type aloneForm struct {
	WaitedSeconds float64 `json:"waited_seconds"` // since it began to wait
	// whether it searches by multicast and has not received a beacon either
	NoBeacon bool `json:"no_beacon,omitempty"`
	// what to give to `--store` on every node if the others cannot find this one
	Store string `json:"store,omitempty"`
	// the `--store` of this agent, if it means a different host on each node, as `localhost` does
	Loopback string `json:"loopback,omitempty"`
	Hint     string `json:"hint,omitempty"` // what to check
	// whether agents of other jobs have been reported, which explains why none has connected
	Explained bool `json:"explained,omitempty"`
}

type waitingForm struct {
	form.Roster
	WaitedSeconds float64 `json:"waited_seconds"` // since this agent began to host the store
}
