package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// nodesValue is the value of --nodes: a number, or MIN:MAX.
type nodesValue options

func (n *nodesValue) Set(text string) error {
	least, most, varies := strings.Cut(text, ":")
	if !varies {
		most = least
	}
	from, badMin := strconv.Atoi(least)
	to, badMax := strconv.Atoi(most)
	if badMin != nil || badMax != nil || varies && (from < 1 || from > to) {
		return errors.New("not a number, or MIN:MAX")
	}
	if n.minNodes, n.nodes = 0, to; from != to {
		n.minNodes = from
	}
	return nil
}

func (n *nodesValue) String() string {
	if n.minNodes == 0 {
		return strconv.Itoa(n.nodes)
	}
	return fmt.Sprintf("%d:%d", n.minNodes, n.nodes)
}

// Type is that of a flag, for messages about a value that cannot be read.
func (n *nodesValue) Type() string { return "nodes" }
