package record

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rdzv/internal/plural"
)

// Facts describe an agent's node and program as the agent has found them before it joined, so that
// the leader can compare the nodes.
type Facts struct {
	// Program identifies what the agent runs. Agents that run different programs are not compared.
	Program string `json:"program,omitempty"`
	// Known are the facts, in an order that is the same on all agents. A fact that is not known is
	// left out.
	Known []Fact `json:"known,omitempty"`
	// Variables are variables of the user that should have the same value on all nodes. An agent
	// without a variable that others have is different.
	Variables map[string]string `json:"variables,omitempty"`
	// Mixed are the names of facts and variables in which the agent's tasks differ; what is above is
	// that of the first one.
	Mixed []string `json:"mixed,omitempty"`
}

// Fact is a fact about a node or a program.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Scope restricts a comparison to the facts with the same scope; "" is all of the program.
	Scope string `json:"scope,omitempty"`
}

// GPUs is the name of the fact how many GPUs an agent has that starts a worker for each of them
// because nobody has said how many there are to be.
const GPUs = "number of GPUs"

// Comparison is a fact, or a variable, as the nodes have it.
type Comparison struct {
	// in what they differ: `python`, `torch`, `script NAME`, `number of GPUs`, or a variable's name
	Fact string `json:"fact"`
	// the nodes by value, the value of most nodes first, at most 8
	Groups []Group `json:"groups"`
	More   int     `json:"more,omitempty"` // how many other values there are
	// Mixed says that the values are meant to be different: agents of one node have different ones,
	// or each of more than two nodes has its own value of a variable.
	Mixed bool `json:"-"`
}

// Group are the nodes that have the same value.
type Group struct {
	Value     string   `json:"value"`                // the value
	Unset     bool     `json:"unset,omitempty"`      // the variable is not set
	Hosts     []string `json:"hosts"`                // the nodes that have the value, the first 8
	MoreHosts int      `json:"more_hosts,omitempty"` // how many other nodes have it
}

// Differs tells whether nodes differ in the fact.
func (c Comparison) Differs() bool { return len(c.Groups) > 1 && !c.Mixed }

// Problem is a difference that keeps the job from starting, and whether it does: with strict each
// one does (Member.Strict). Without it, agents without a GPU beside others that start a worker for
// each of theirs.
func (c Comparison) Problem(strict bool) (p Problem, is bool) {
	p.Kind = DifferenceProblem
	isNone := func(g Group) bool { return g.Value == "0" }
	switch {
	case c.Fact == GPUs && len(c.Groups) > 1 && slices.ContainsFunc(c.Groups, isNone):
		p.Text = fmt.Sprintf("cannot start one worker per GPU: %v", c)
		p.Hint = "leave out the nodes without a GPU, or give --nproc-per-node N on all nodes"
	case strict && c.Differs():
		p.Text = fmt.Sprintf("cannot start: %v (--strict)", c)
	default:
		return Problem{}, false
	}
	p.Text = Clip(p.Text)
	return p, true
}

// String returns a line for people: "python is 3.11 on node1, node2 and 6 more, but 3.9 on node7".
func (c Comparison) String() string {
	var b strings.Builder
	b.WriteString(c.Fact + " is ")
	for i, g := range c.Groups {
		shown, more := g.Hosts, g.MoreHosts
		switch {
		case i == 0 && len(shown)+more > 3: // where the others are is of more interest
			shown, more = shown[:2], len(shown)+more-2
		case i == 1:
			b.WriteString(", but ")
		case i > 1:
			b.WriteString(", ")
		}
		b.WriteString(g.text() + " on " + List(shown, more))
	}
	if c.More > 0 {
		b.WriteString(" and " + strconv.Itoa(c.More) + " other " + plural.Noun(c.More, "value"))
	}
	return b.String()
}

// text is the value, quoted if it could be taken for something else.
func (g Group) text() string {
	isPlain := func(r rune) bool {
		return r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' ||
			strings.ContainsRune(" _.+-/:=%@", r)
	}
	rest := strings.TrimLeftFunc(g.Value, isPlain)
	switch {
	case g.Unset:
		return "not set"
	case g.Value == "" || rest != "" || strings.TrimSpace(g.Value) != g.Value:
		return strconv.Quote(g.Value)
	}
	return g.Value
}

// With returns f with the differences of another task of the same agent.
func (f Facts) With(other Facts) Facts {
	f.Mixed = slices.Clone(f.Mixed)
	note := func(name string) {
		if !slices.Contains(f.Mixed, name) {
			f.Mixed = append(f.Mixed, name)
		}
	}
	for _, k := range slices.Concat(f.Known, other.Known) {
		if !slices.Contains(f.Known, k) || !slices.Contains(other.Known, k) {
			note(k.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Variables)) {
		if value, set := other.Variables[name]; !set || value != f.Variables[name] {
			note(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(other.Variables)) {
		if _, set := f.Variables[name]; !set {
			note(name)
		}
	}
	return f
}

// Limits of facts, in bytes and numbers: the leader reads those of all agents.
const (
	MaxFacts     = 128
	MaxFactValue = 256
)

// clipped are the facts within the limits.
func (f Facts) Clipped() Facts {
	f.Known = slices.Clone(f.Known[:min(len(f.Known), MaxFacts)])
	for i := range f.Known {
		k := &f.Known[i]
		k.Name, k.Value, k.Scope = ClipFact(k.Name), ClipFact(k.Value), ClipFact(k.Scope)
	}
	f.Program = ClipFact(f.Program)
	f.Mixed = slices.Clone(f.Mixed[:min(len(f.Mixed), MaxFacts)])
	for i, name := range f.Mixed {
		f.Mixed[i] = ClipFact(name)
	}
	if len(f.Variables) == 0 {
		return f
	}
	variables := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f.Variables)) {
		if len(variables) < MaxFacts {
			variables[ClipFact(name)] = ClipFact(f.Variables[name])
		}
	}
	f.Variables = variables
	return f
}

func ClipFact(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > MaxFactValue {
		text = strings.ToValidUTF8(text[:MaxFactValue-len("...")], "") + "..."
	}
	return text
}
