// Package hosts parses the host lists of launchers, and selects the interfaces and addresses of
// this host that other hosts can reach. All functions except ByRoute are pure.
//
// It does not resolve names and opens no connections.
package hosts

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseHostlist expands a list of hosts in Slurm's notation, and keeps its order:
//
//	node[1-3,7],gpu[08-10]-ib    node1 node2 node3 node7 gpu08-ib gpu09-ib gpu10-ib
//	r[1-2]n[1-2]                 r1n1 r1n2 r2n1 r2n2
//
// The numbers of a range whose first number starts with 0 are padded to the width of that number.
func ParseHostlist(text string) ([]string, error) { return expandList(text, expandHosts) }

// expandHosts expands the first brackets, and for each of their numbers the rest of the entry.
func expandHosts(entry string, limit int) ([]string, error) {
	prefix, rest, bracket := strings.Cut(entry, "[")
	if strings.Contains(prefix, "]") || entry == "" || limit < 1 {
		return nil, errHostlist
	}
	if !bracket {
		return []string{entry}, nil
	}
	inside, suffix, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, errHostlist
	}
	numbers, err := expandNumbers(inside, -1, limit)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range numbers {
		tails := []string{""}
		if suffix != "" {
			if tails, err = expandHosts(suffix, limit-len(names)); err != nil {
				return nil, err
			}
		}
		for _, tail := range tails {
			names = append(names, prefix+n+tail)
		}
	}
	return names, nil
}

// ParseNodeRegex expands OMPI_MCA_orte_node_regex of Open MPI 4 to the hosts of the job in the
// order of Open MPI's daemons; the first is mpirun's host.
//
//	node[1:1-3]@0(3)                              node1 node2 node3
//	node[1:1,3,2]@0(3)                            node1 node3 node2
//	n[2:8-10].x,[2:10].77.0.13@0(3)               n08.x n09.x n10.x 10.77.0.13
//
// The brackets contain the width of the numbers and their ranges. The part after @ describes
// topologies and is ignored.
func ParseNodeRegex(text string) ([]string, error) {
	text, _, _ = strings.Cut(text, "@")
	return expandList(text, expandEntry)
}

func expandEntry(entry string, limit int) ([]string, error) {
	prefix, rest, bracket := strings.Cut(entry, "[")
	if limit < 1 {
		return nil, errHostlist
	}
	if !bracket {
		return []string{entry}, nil
	}
	inside, suffix, closed := strings.Cut(rest, "]")
	digits, ranges, colon := strings.Cut(inside, ":")
	width, err := strconv.Atoi(digits)
	if !closed || !colon || err != nil || width < 0 || strings.ContainsAny(suffix, "[]") {
		return nil, errHostlist
	}
	names, err := expandNumbers(ranges, width, limit)
	for i, n := range names {
		names[i] = prefix + n + suffix
	}
	return names, err
}

// maxNodes is the maximum number of names in a list of hosts. A longer list is rejected as
// malformed.
const maxNodes = 1 << 16

var errHostlist = errors.New("malformed list of hosts")

// expandList expands each entry of a list whose entries are separated by commas. expand returns the
// names that one entry stands for, at most limit.
func expandList(
	text string, expand func(entry string, limit int) ([]string, error),
) ([]string, error) {
	var names []string
	for text != "" {
		var entry string
		entry, text = splitEntry(text)
		some, err := expand(entry, maxNodes-len(names))
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
	}
	if len(names) == 0 {
		return nil, errHostlist
	}
	return names, nil
}

// splitEntry splits the text at the first comma outside brackets.
func splitEntry(text string) (entry, rest string) {
	depth := 0
	for i, r := range text {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth <= 0:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// expandNumbers expands "1-3,07" to 1 2 3 07 if width is -1, else all numbers padded to width.
func expandNumbers(text string, width, limit int) ([]string, error) {
	var numbers []string
	for part := range strings.SplitSeq(text, ",") {
		low, high, two := strings.Cut(part, "-")
		if !two {
			high = low
		}
		first, err1 := strconv.Atoi(low)
		last, err2 := strconv.Atoi(high)
		digits := max(width, 0)
		if width < 0 && strings.HasPrefix(low, "0") {
			digits = len(low)
		}
		if err1 != nil || err2 != nil || first < 0 || last < first || last == math.MaxInt ||
			digits > 20 || last-first >= limit-len(numbers) {
			return nil, errHostlist
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", digits, n))
		}
	}
	return numbers, nil
}

// A NodeAddr is a node of Slurm and the name or address by which Slurm reaches it.
type NodeAddr struct{ Name, Addr string }

// ParseScontrol parses the output of "scontrol show node", with or without the option -o. The
// address of a node without NodeAddr is its name.
func ParseScontrol(text string) []NodeAddr {
	var list []NodeAddr
	for word := range strings.FieldsSeq(text) {
		if name, ok := strings.CutPrefix(word, "NodeName="); ok {
			list = append(list, NodeAddr{Name: name, Addr: name})
		}
		if addr, ok := strings.CutPrefix(word, "NodeAddr="); ok && len(list) > 0 {
			list[len(list)-1].Addr = addr
		}
	}
	return list
}
