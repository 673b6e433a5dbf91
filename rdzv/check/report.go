// Package check makes a report on the nodes of a job from what its agents publish when they join:
// each fact, with the nodes that have each value.
package check

import (
	"fmt"
	"slices"

	"rdzv/rdzv"
)

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

// Of is the report on the members that have joined a job of so many tasks, in their order.
func Of(job string, tasks int, members []rdzv.Member) Report {
	r := Report{
		Job: job, Tasks: tasks, Launched: slices.ContainsFunc(members, rdzv.Member.Launched),
		Nodes: []string{}, Rows: []Row{}, Problems: []Finding{}, Warnings: []Finding{},
	}
	names := nodeNames(members)
	for i, m := range members {
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
	r.Rows = rowsOf(members, names)
	r.addLinks(members, names)
	r.warnOfDifferences(members)
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

// nodeNames are the names of the members' nodes: the name of the host, with a process of the node
// if several nodes have the same.
func nodeNames(members []rdzv.Member) []string {
	names, nodes := make([]string, len(members)), map[string]string{}
	byNode := map[string]string{}
	for i, m := range members {
		node := nodeOf(m)
		if byNode[node] == "" {
			name := m.Host
			if _, taken := nodes[name]; taken {
				name = fmt.Sprintf("%s (pid %d)", m.Host, m.PID)
			}
			nodes[name], byNode[node] = node, name
		}
		names[i] = byNode[node]
	}
	return names
}

// nodeOf identifies the node of a member.
func nodeOf(m rdzv.Member) string {
	if m.Node == "" {
		return m.ID
	}
	return m.Node
}

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
