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
	// Files says that they may decide which program, files and devices workers start with: an agent
	// looks for the program again when it has them. What it had found without them does not count.
	Files bool `json:"files,omitempty"`
}

// Without is members without the facts and problems that the exports may change.
func (e *Exports) Without(members []Member) []Member {
	if e == nil {
		return members
	}
	members = slices.Clone(members)
	for i := range members {
		m := &members[i]
		m.Facts.Variables = maps.Clone(m.Facts.Variables)
		for _, name := range e.Variables {
			delete(m.Facts.Variables, name)
		}
		if e.Files {
			m.Facts.Known = slices.DeleteFunc(slices.Clone(m.Facts.Known), Fact.ofProgram)
			m.Problems = slices.DeleteFunc(slices.Clone(m.Problems), Problem.ofProgram)
		}
	}
	return members
}

// ofProgram tells whether a fact depends on which program is found.
func (f Fact) ofProgram() bool { return f.Name == "python" || f.Name == "torch" }

// ofProgram tells whether a problem depends on which program is found.
func (p Problem) ofProgram() bool {
	return p.Kind == ProgramMissing || p.Kind == ProgramNotExecutable
}
