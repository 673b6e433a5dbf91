package record

import (
	"cmp"
	"maps"
	"slices"
)

// Compare compares the facts of members: one comparison for each fact, in the order of the facts,
// and then one for each variable, by name. Members with different programs have comparisons of
// their own.
func Compare(members []Member) (all []Comparison) {
	programs := map[string][]*Member{}
	var order []string
	for i := range members {
		m := &members[i]
		if _, known := programs[m.Facts.Program]; !known {
			order = append(order, m.Facts.Program)
		}
		programs[m.Facts.Program] = append(programs[m.Facts.Program], m)
	}
	for _, program := range order {
		all = append(all, compareKnown(programs[program])...)
	}
	for _, program := range order {
		all = append(all, compareVariables(programs[program])...)
	}
	return all
}

// named identifies what is compared.
type named struct{ name, scope string }

// valued is a value of a fact, or that of a variable that is not set.
type valued struct {
	value string
	unset bool
}

// compareKnown compares the facts of members that run the same program.
func compareKnown(members []*Member) (all []Comparison) {
	tables := map[named]table{}
	var order []named
	for _, m := range members {
		for _, f := range m.Facts.Known {
			key := named{f.Name, f.Scope}
			if tables[key] == nil {
				tables[key] = table{}
				order = append(order, key)
			}
			tables[key].add(m, valued{value: f.Value})
		}
	}
	for _, key := range order {
		all = append(all, tables[key].comparison(key.name, members))
	}
	return all
}

// compareVariables compares the variables of members that run the same program.
func compareVariables(members []*Member) (all []Comparison) {
	names := map[string]bool{}
	for _, m := range members {
		for name := range m.Facts.Variables {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t := table{}
		for _, m := range members {
			value, set := m.Facts.Variables[name]
			t.add(m, valued{value, !set})
		}
		c := t.comparison(name, members)
		// If each of several nodes has a value of its own, that is its purpose.
		c.Mixed = c.Mixed || t.isOwn()
		all = append(all, c)
	}
	return all
}

// table has the members by their value of one fact.
type table map[valued][]*Member

func (t table) add(m *Member, v valued) { t[v] = append(t[v], m) }

// comparison groups the hosts by value: the value of most hosts first, then that of the first host.
func (t table) comparison(name string, members []*Member) Comparison {
	isMixed := func(m *Member) bool { return slices.Contains(m.Facts.Mixed, name) }
	c := Comparison{Fact: name, Mixed: t.isMixed() || slices.ContainsFunc(members, isMixed)}
	for v, members := range t {
		g := Group{Value: v.value, Unset: v.unset}
		hosts := make([]string, len(members))
		for i, m := range members {
			hosts[i] = m.Host
		}
		g.Hosts, g.MoreHosts = Cut(Sorted(hosts))
		c.Groups = append(c.Groups, g)
	}
	slices.SortFunc(c.Groups, func(a, b Group) int {
		size := func(g Group) int { return len(g.Hosts) + g.MoreHosts }
		return cmp.Or(size(b)-size(a), cmp.Compare(a.Hosts[0], b.Hosts[0]))
	})
	c.Groups, c.More = Cut(c.Groups)
	return c
}

// isMixed tells whether a node has several values.
func (t table) isMixed() bool {
	if len(t) == 1 {
		return false
	}
	nodes := map[string]valued{}
	for v, members := range t {
		for _, m := range members {
			node := cmp.Or(m.Node, m.ID)
			if first, known := nodes[node]; known && first != v {
				return true
			}
			nodes[node] = v
		}
	}
	return false
}

// isOwn tells whether each of more than two nodes has a value of its own. The node of an agent
// without one is the agent.
func (t table) isOwn() bool {
	for _, members := range t {
		node := members[0].Node
		isOther := func(m *Member) bool { return m.Node != node || node == "" }
		if slices.ContainsFunc(members[1:], isOther) {
			return false
		}
	}
	return len(t) > 2
}
