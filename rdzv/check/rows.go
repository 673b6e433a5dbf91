package check

import (
	"slices"
	"strings"

	"rdzv/rdzv"
	"rdzv/rdzv/internal/record"
)

// rowsOf are the facts of all agents, in the order of the first agent that has each.
func rowsOf(nodes []Node, names []string) []Row {
	b := builder{rows: map[string]*rowOf{}}
	for i, m := range nodes {
		for _, f := range m.NodeFacts {
			row := b.row(f.Name)
			value := f.Value
			if f.Unknown {
				value, row.unknown = notCompared+value, true
			}
			row.add(names[i], value)
			row.Own, row.Warned = row.Own || f.Own, row.Warned || f.Warning != ""
		}
		for _, f := range m.Facts.Known {
			if f.Name != record.GPUs { // there is a row of their models
				b.row(f.Name).add(names[i], f.Value)
			}
		}
	}
	b.variables(nodes, names)
	rows := make([]Row, len(b.order))
	for i, fact := range b.order {
		rows[i] = b.rows[fact].grouped()
	}
	return rows
}

// builder collects rows.
type builder struct {
	rows  map[string]*rowOf
	order []string
}

// rowOf is a row before its nodes are grouped.
type rowOf struct {
	Row
	nodes  []string
	values map[string][]string // of each node, whose agents may have different ones

	unknown bool // values that begin with notCompared are none
}

// notCompared begins the value of a fact that is not known.
const notCompared = "not compared: "

func (b *builder) row(fact string) *rowOf {
	if b.rows[fact] == nil {
		b.rows[fact] = &rowOf{Row: Row{Fact: fact}, values: map[string][]string{}}
		b.order = append(b.order, fact)
	}
	return b.rows[fact]
}

func (r *rowOf) add(node, value string) {
	if r.values[node] == nil {
		r.nodes = append(r.nodes, node)
	}
	if !slices.Contains(r.values[node], value) {
		r.values[node] = append(r.values[node], value)
	}
}

// grouped is the row with its nodes by value. Values that each node has for itself keep the order
// of the nodes.
func (r *rowOf) grouped() Row {
	for _, node := range r.nodes {
		value := strings.Join(r.values[node], "; ")
		at := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Value == value })
		if at < 0 {
			unknown := r.unknown && strings.HasPrefix(value, notCompared)
			r.Groups = append(r.Groups, Group{Value: value, Unknown: unknown})
			at = len(r.Groups) - 1
		}
		r.Groups[at].Nodes = append(r.Groups[at].Nodes, node)
	}
	if !r.Own {
		slices.SortStableFunc(r.Groups, func(a, b Group) int { return len(b.Nodes) - len(a.Nodes) })
	}
	return r.Row
}

// variables adds a row for each variable in which nodes differ.
func (b *builder) variables(nodes []Node, names []string) {
	for _, c := range compare(nodes) {
		isVariable := slices.ContainsFunc(nodes, func(m Node) bool {
			_, set := m.Facts.Variables[c.Fact]
			return set
		})
		if !isVariable || !c.Differs() {
			continue
		}
		for i, m := range nodes {
			value, set := m.Facts.Variables[c.Fact]
			if !set {
				value = "not set"
			}
			b.row(c.Fact).add(names[i], value)
		}
	}
}

func compare(nodes []Node) []rdzv.Comparison {
	members := make([]rdzv.Member, len(nodes))
	for i, m := range nodes {
		members[i] = m.Member
	}
	return rdzv.Compare(members)
}

// addDifferences adds the differences of which exec warns, or for which it does not start.
func (r *Report) addDifferences(nodes []Node) {
	var differ []string
	for _, c := range compare(nodes) {
		p, is := c.Problem(r.strict)
		if is {
			r.Problems = append(r.Problems, Finding{Text: p.Text, Hint: p.Hint})
		}
		if !c.Differs() {
			continue
		}
		at := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Fact == c.Fact })
		if at >= 0 && !slices.Contains(differ, c.Fact) {
			r.Rows[at].Warned = true
			differ = append(differ, c.Fact)
		}
	}
	if len(differ) > 0 {
		r.Warnings = append(r.Warnings, Finding{
			Text: "the nodes differ in what should be the same for a job: " + strings.Join(differ, ", "),
			Hint: "exec warns of this; with --strict it does not start",
		})
	}
}
