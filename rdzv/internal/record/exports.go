package record

import (
	"maps"
	"slices"
)

// Exports are environment variables that the agent of rank 0 gives to the workers of all agents.
// They are published together with the world.
type Exports struct {
	Sealed []byte `json:"sealed"` // that agents can read, and nobody who reads the store's files
	// Variables are the names of those that are exported. The facts about them are not compared.
	Variables []string `json:"variables"`
	// Confirm lets all agents wait, after they have read the exports, until each of them has called
	// Ready: no worker may start unless all can. The problems and facts of the members do not count
	// then.
	Confirm bool `json:"confirm,omitempty"`
}

// Without is members whose facts do not have the exported variables.
func (e *Exports) Without(members []Member) []Member {
	if e == nil {
		return members
	}
	members = slices.Clone(members)
	for i := range members {
		f := &members[i].Facts
		f.Variables = maps.Clone(f.Variables)
		for _, name := range e.Variables {
			delete(f.Variables, name)
		}
	}
	return members
}

// Readiness is the value of ready/ID.
type Readiness struct {
	Problems []Problem `json:"problems,omitempty"` // why the agent cannot start its workers
	Facts    Facts     `json:"facts,omitzero"`
}

// Started is the value of signal/start: all agents have confirmed.
type Started struct{}
