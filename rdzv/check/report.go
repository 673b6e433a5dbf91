// Package check makes a report on the nodes of a job from what its agents tell of them: each fact,
// with the nodes that have each value, and the connections between them.
package check

import (
	"cmp"
	"fmt"
	"slices"

	"rdzv/rdzv"
)

// Node is what an agent tells of its node.
type Node struct {
	// The agent, with its tasks, facts, problems, and Strict.
	rdzv.Member
	// Rank is the first rank of its workers, or rdzv.Unknown.
	Rank      int    `json:"rank"`
	NodeFacts []Fact `json:"node_facts"`
	// Answers is the address and port at which this agent answers those of other nodes, so that
	// they can measure their connections to its node; "" if it does not. Without an address it is
	// that at which they reach the store, which this agent hosts.
	Answers string `json:"answers,omitempty"`
	// Measured are its connections, which it tells when all agents have told the rest.
	Measured
}

// Compare orders the agents of a job.
func (m Node) Compare(n Node) int {
	return cmp.Or(cmp.Compare(m.Rank, n.Rank), cmp.Compare(m.Host, n.Host), cmp.Compare(m.PID, n.PID))
}

// Fact is something about an agent's node that people want to know or compare before a job runs,
// such as the size of its memory. Unlike that in rdzv.Facts, a difference never keeps a job from
// running.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Own says that each node has a value of its own, such as its address.
	Own bool `json:"own,omitempty"`
	// Unknown says that Value is why it is not known, so that it is not compared.
	Unknown bool `json:"unknown,omitempty"`
	// Warning is why the value may cause trouble, and Hint what to do about it; "" if it is good.
	Warning string `json:"warning,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// Report is the result of "rdzv check" for all nodes of a job.
type Report struct {
	Job      string   `json:"job"`
	Tasks    int      `json:"tasks"`              // of the job; see rdzv.Roster
	Launched bool     `json:"launched,omitempty"` // by a launcher
	Joined   int      `json:"joined"`             // number of tasks
	Workers  int      `json:"workers"`
	Nodes    []string `json:"nodes"` // that have joined
	Rows     []Row    `json:"facts"`
	Links    []Link   `json:"links,omitempty"` // between nodes
	// Problems keep exec from running the program; Warnings do not.
	Problems []Finding `json:"problems"`
	Warnings []Finding `json:"warnings"`

	strict bool // differences in what should be the same are problems
}

// Row is a fact, with the nodes by its value: that of most nodes first.
type Row struct {
	Fact   string  `json:"fact"`
	Groups []Group `json:"groups"`
	Own    bool    `json:"own,omitempty"` // each node has a value of its own
	Warned bool    `json:"warned,omitempty"`
}

// Differs tells whether the nodes should have the same value and do not, as far as it is known.
func (r Row) Differs() bool {
	known := 0
	for _, g := range r.Groups {
		if !g.Unknown {
			known++
		}
	}
	return !r.Own && known > 1
}

// Group are the nodes that have the same value.
type Group struct {
	Value string   `json:"value"`
	Nodes []string `json:"nodes"`
	// Unknown says that Value is why that of these nodes is not known.
	Unknown bool `json:"unknown,omitempty"`
}

// Finding is a problem or a warning, and the nodes that have it.
type Finding struct {
	Text  string   `json:"text"`
	Hint  string   `json:"hint,omitempty"`
	Nodes []string `json:"nodes,omitempty"` // none if it is about the job
}

// Of is the report on the agents that have joined a job of so many tasks, in their order.
func Of(job string, tasks int, nodes []Node) Report {
	r := Report{
		Job: job, Tasks: tasks, Launched: slices.ContainsFunc(nodes, Node.Launched),
		Nodes: []string{}, Rows: []Row{}, Problems: []Finding{}, Warnings: []Finding{},
	}
	names := namesOf(nodes)
	for i, m := range nodes {
		r.strict = r.strict || m.Strict
		r.Joined += len(m.Tasks)
		r.Workers += m.Workers()
		if !slices.Contains(r.Nodes, names[i]) {
			r.Nodes = append(r.Nodes, names[i])
		}
		for _, p := range m.Problems {
			r.Problems = add(r.Problems, p.Text, p.Hint, names[i])
		}
		for _, f := range m.NodeFacts {
			if f.Warning != "" {
				r.Warnings = add(r.Warnings, f.Warning, f.Hint, names[i])
			}
		}
	}
	r.Rows = rowsOf(nodes, names)
	r.addMaster(nodes, names)
	r.addLinks(nodes, names)
	r.addDifferences(nodes)
	return r
}

// AddProblems adds the problems of a verdict that are not about single members.
func (r *Report) AddProblems(v *rdzv.Verdict) {
	if v == nil {
		return
	}
	for _, p := range v.Problems {
		if !slices.ContainsFunc(r.Problems, func(f Finding) bool { return f.Text == p.Text }) {
			r.Problems = append(r.Problems, Finding{p.Text, p.Hint, p.Hosts})
		}
	}
	if v.Kind == rdzv.Unready && v.Text != "" {
		r.Problems = append(r.Problems, Finding{Text: v.Text})
	}
}

// VerdictProblems are the problems for the verdict of the job.
func (r *Report) VerdictProblems() (problems []rdzv.NodeProblem) {
	for _, f := range r.Problems {
		p := rdzv.Problem{Kind: rdzv.OtherProblem, Text: f.Text, Hint: f.Hint}
		problems = append(problems, rdzv.NodeProblem{Problem: p, Hosts: f.Nodes})
	}
	return problems
}

// namesOf are the names of the agents' nodes: the name of the host, with a process of the node if
// several nodes have the same.
func namesOf(nodes []Node) []string {
	names, taken := make([]string, len(nodes)), map[string]bool{}
	byNode := map[string]string{}
	for i, m := range nodes {
		node := m.node()
		if byNode[node] == "" {
			name := m.Host
			if taken[name] {
				name = fmt.Sprintf("%s (pid %d)", m.Host, m.PID)
			}
			taken[name], byNode[node] = true, name
		}
		names[i] = byNode[node]
	}
	return names
}

// node identifies the node of an agent.
func (m Node) node() string { return cmp.Or(m.Node, m.ID) }

func add(findings []Finding, text, hint, node string) []Finding {
	at := slices.IndexFunc(findings, func(f Finding) bool { return f.Text == text })
	if at < 0 {
		return append(findings, Finding{text, hint, []string{node}})
	}
	if f := &findings[at]; !slices.Contains(f.Nodes, node) {
		f.Nodes = append(f.Nodes, node)
	}
	return findings
}
