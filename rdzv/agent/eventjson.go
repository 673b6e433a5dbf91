package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/meet"
)

// SchemaVersion is the version of the JSON form of events. A new version renames or removes a field
// or an event, or changes a meaning; new fields and events do not need one.
const SchemaVersion = 1

// MarshalEvent returns the JSON form of an event: one object without newline, with the members "v"
// ([SchemaVersion]), "time" (RFC 3339, UTC), "type", and "event" with the fields of its type, which
// docs/events.md lists. Durations are in seconds, ranks and numbers that are not known are -1, and
// a signal is its name. It holds no secret.
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
		return waitingForm{rosterForm(e.Roster), e.Waited.Seconds()}
	case WorldAgreed:
		return worldFormOf(e.World)
	case WorkerExited:
		return workerFormOf(e.Worker)
	case InitProgress:
		return initProgressFormOf(e.InitProgress)
	case Stragglers:
		return stragglersFormOf(e.Stragglers)
	case Stalled:
		return stalledFormOf(e)
	case JobEnded:
		return jobEndedForm{
			e.Job, verdictFormOf(e.Verdict), e.Hosting, e.Leads, e.Own, e.Announce, e.StoreHost,
			e.StoreRank, e.StoreSilent.Seconds(), e.Etcd, e.StoreLost, e.NoRestart, e.Hint,
		}
	case AttemptFailed:
		return attemptFailedFormOf(e)
	case Restarting:
		return restartingForm{
			e.Attempt, e.MaxRestarts, e.Delay.Seconds(), layoutFormOf(e.Vacant), e.Missing,
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
	Text          string       `json:"text"`
	WaitedSeconds float64      `json:"waited_seconds"`
	Unresolved    []string     `json:"unresolved,omitempty"`
	Unanswered    []string     `json:"unanswered,omitempty"`
	Tried         []meet.Tried `json:"tried,omitempty"`
	Multicast     bool         `json:"multicast,omitempty"`
	Heard         string       `json:"heard,omitempty"`
	Hint          string       `json:"hint,omitempty"`
}

type aloneForm struct {
	WaitedSeconds float64 `json:"waited_seconds"`
	NoBeacon      bool    `json:"no_beacon,omitempty"`
	Store         string  `json:"store,omitempty"`
	Loopback      string  `json:"loopback,omitempty"`
	Hint          string  `json:"hint,omitempty"`
	Explained     bool    `json:"explained,omitempty"`
}

type waitingForm struct {
	rosterForm
	WaitedSeconds float64 `json:"waited_seconds"`
}

type worldForm struct {
	Job        string       `json:"job"`
	Attempt    int          `json:"attempt"`
	Restarts   int          `json:"max_restarts,omitempty"`
	WorldSize  int          `json:"world_size"`
	Agents     int          `json:"agents"`
	Nodes      int          `json:"nodes"`
	MaxAgents  int          `json:"max_agents,omitempty"`
	Layout     []layoutForm `json:"layout"`
	MasterAddr string       `json:"master_addr"`
	MasterPort int          `json:"master_port"`
	StoreHost  string       `json:"store_host,omitempty"`
	StoreRank  int          `json:"store_rank"`
	Seat       seatForm     `json:"seat"`

	Spares     []string       `json:"spares,omitempty"`
	MoreSpares int            `json:"more_spares,omitempty"`
	Replaced   []replacedForm `json:"replaced,omitempty"`
}

type replacedForm struct {
	Ranks string `json:"ranks"`
	Host  string `json:"host"`
	Lost  string `json:"lost_host"`
}

type initProgressForm struct {
	Ranks         int          `json:"world_size"`
	Reached       int          `json:"reached"`
	Missing       []layoutForm `json:"missing,omitempty"`
	MoreNodes     int          `json:"more_nodes,omitempty"`
	First         *int         `json:"first_rank,omitempty"`
	FirstHost     string       `json:"first_host,omitempty"`
	FirstPython   int          `json:"first_python_pid,omitempty"`
	WaitedSeconds float64      `json:"waited_seconds"`
	Rank0Absent   bool         `json:"rank0_absent,omitempty"`
}

func initProgressFormOf(p rdzv.InitProgress) initProgressForm {
	form := initProgressForm{
		Ranks: p.Ranks, Reached: p.Reached, Missing: layoutFormOf(p.Missing), MoreNodes: p.More,
		FirstHost: p.Host, FirstPython: p.First.Python, WaitedSeconds: p.Waited.Seconds(),
		Rank0Absent: p.Absent,
	}
	if p.Reached < p.Ranks {
		form.First = &p.First.Rank
	}
	return form
}

type layoutForm struct {
	Host  string `json:"host"`
	Ranks string `json:"ranks"`
}

type seatForm struct {
	Rank      int `json:"rank"`
	LocalRank int `json:"local_rank"`
	LocalSize int `json:"local_world_size"`
	Node      int `json:"node_rank"`
	Slots     int `json:"workers"`

	Spare bool `json:"spare,omitempty"`
}

func worldFormOf(w rdzv.World) worldForm {
	form := worldForm{
		Job: w.Job, Attempt: w.Attempt, Restarts: w.MaxRestarts,
		WorldSize: w.Size, Agents: w.Agents, Nodes: w.Nodes, MaxAgents: w.MaxAgents,
		MasterAddr: w.MasterAddr, MasterPort: w.MasterPort, StoreHost: w.StoreHost,
		StoreRank: w.StoreRank,
		Layout:    layoutFormOf(w.Layout), Seat: seatForm(w.Seat),
		Spares: w.Spares, MoreSpares: w.MoreSpares,
	}
	for _, r := range w.Replaced {
		form.Replaced = append(form.Replaced, replacedForm(r))
	}
	return form
}

func layoutFormOf(nodes []rdzv.NodeRanks) (form []layoutForm) {
	for _, node := range nodes {
		form = append(form, layoutForm(node))
	}
	return form
}
