package rdzv

import "slices"

// NodeFact is something about an agent's node that people want to know or compare before a job
// runs, such as the size of its memory. Unlike [Facts], a difference in it never keeps a job from
// running.
type NodeFact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Own says that each node has a value of its own, such as its address.
	Own bool `json:"own,omitempty"`
	// Warning is why the value may cause trouble, and Hint what to do about it; "" if it is good.
	Warning string `json:"warning,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// clippedFacts are facts within the limits of a member's facts.
func clippedFacts(facts []NodeFact) []NodeFact {
	facts = slices.Clone(facts[:min(len(facts), maxFacts)])
	for i := range facts {
		f := &facts[i]
		f.Name, f.Value = clipFact(f.Name), clipFact(f.Value)
		f.Warning, f.Hint = clipFact(f.Warning), clipFact(f.Hint)
	}
	return facts
}
