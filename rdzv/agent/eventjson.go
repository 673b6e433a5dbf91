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
	rosterForm
	WaitedSeconds float64 `json:"waited_seconds"` // since this agent began to host the store
}

type worldForm struct {
	Job string `json:"job"` // name of the job
	// number of the attempt; 0 is the first
	Attempt int `json:"attempt"`
	// how many attempts there may be after the first one
	Restarts int `json:"max_restarts,omitempty"`
	// number of workers of the job (WORLD_SIZE)
	WorldSize int `json:"world_size"`
	Agents    int `json:"agents"` // number of agents that run workers
	Nodes     int `json:"nodes"`  // number of their nodes
	// the largest number of agents, in a job with a variable number of nodes
	MaxAgents int `json:"max_agents,omitempty"`
	// the nodes with their ranks; if there are more than 8, the first two and the last one
	Layout     []layoutForm `json:"layout"`
	MasterAddr string       `json:"master_addr"` // MASTER_ADDR
	MasterPort int          `json:"master_port"` // MASTER_PORT
	// node of the agent that hosts the store
	StoreHost string   `json:"store_host,omitempty"`
	StoreRank int      `json:"store_rank"` // first rank of that agent
	Seat      seatForm `json:"seat"`       // the place of this agent in the world

	Spares     []string `json:"spares,omitempty"`      // nodes with such agents, at most 8
	MoreSpares int      `json:"more_spares,omitempty"` // how many others there are
	// agents that have taken over the ranks of lost ones in this attempt
	Replaced []replacedForm `json:"replaced,omitempty"`
}

type replacedForm struct {
	Ranks string `json:"ranks"`     // the ranks, as in `layout`
	Host  string `json:"host"`      // the node on which they run now
	Lost  string `json:"lost_host"` // the node on which they ran before; it may be the same
}

type initProgressForm struct {
	Ranks int `json:"world_size"` // number of workers of the job
	// number of workers that have reached it, or have ended
	Reached int `json:"reached"`
	// nodes of the workers that have not, the first 8
	Missing []layoutForm `json:"missing,omitempty"`
	// how many other such nodes there are
	MoreNodes int    `json:"more_nodes,omitempty"`
	First     *int   `json:"first_rank,omitempty"` // the lowest of these ranks
	FirstHost string `json:"first_host,omitempty"` // its node
	// process ID of the Python process of that rank
	FirstPython int `json:"first_python_pid,omitempty"`
	// since rank 0 reached it, or with `rank0_absent` since the others try to connect; up to 2 s
	// less than the real time
	WaitedSeconds float64 `json:"waited_seconds"`
	// `true` if rank 0 is missing; `reached` is then the number of those that try to connect to it
	Rank0Absent bool `json:"rank0_absent,omitempty"`
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
	Host  string `json:"host"`  // name of one
	Ranks string `json:"ranks"` // its ranks, such as `0-7`, `0,2`, or `0,2,...,14`
}

type seatForm struct {
	Rank      int `json:"rank"`             // rank of its first worker; the others follow
	LocalRank int `json:"local_rank"`       // local rank of its first worker
	LocalSize int `json:"local_world_size"` // number of workers on this node
	Node      int `json:"node_rank"`        // rank of this node
	Slots     int `json:"workers"`          // number of workers of this agent

	// this agent runs no workers, and waits for the loss of another one, or has joined too late
	// for this attempt and waits for the next one
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
