package rdzv

import (
	"fmt"
	"slices"
	"strings"
)

// maxLayout is the number of nodes up to which a layout is complete.
const maxLayout = 8

// layoutOf returns the ranks on each node, in the nodes' order; of more than maxLayout nodes the
// first two and the last one, because each agent reads it.
func layoutOf(nodes [][]Member, seats map[string]Seat) []NodeRanks {
	if n := len(nodes); n > maxLayout {
		nodes = [][]Member{nodes[0], nodes[1], nodes[n-1]}
	}
	layout := make([]NodeRanks, len(nodes))
	for i, node := range nodes {
		var ranks []int
		for _, m := range node {
			for r := range m.Slots {
				ranks = append(ranks, seats[m.ID].Rank+r)
			}
		}
		layout[i] = NodeRanks{Host: node[0].Host, Ranks: ranges(ranks)}
	}
	return layout
}

// ranges formats ranks as "0-3", "0,2" or "0,2,...,14".
func ranges(ranks []int) string {
	slices.Sort(ranks)
	var texts []string
	for len(ranks) > 0 {
		n := 1
		for n < len(ranks) && ranks[n] == ranks[0]+n {
			n++
		}
		text := fmt.Sprint(ranks[0])
		if n > 1 {
			text += fmt.Sprintf("-%d", ranks[n-1])
		}
		texts, ranks = append(texts, text), ranks[n:]
	}
	if n := len(texts); n > 3 {
		texts = []string{texts[0], texts[1], "...", texts[n-1]}
	}
	return strings.Join(texts, ",")
}
