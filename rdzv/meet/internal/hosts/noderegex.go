package hosts

import (
	"fmt"
	"strconv"
	"strings"
)

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
	if !closed || !colon || err != nil || width < 0 || width > 20 ||
		strings.ContainsAny(suffix, "[]") {
		return nil, errHostlist
	}
	var names []string
	for r := range strings.SplitSeq(ranges, ",") {
		first, last, err := numberRange(r)
		if err != nil || last-first >= limit-len(names) {
			return nil, errHostlist
		}
		for n := first; n <= last; n++ {
			names = append(names, fmt.Sprintf("%s%0*d%s", prefix, width, n, suffix))
		}
	}
	return names, nil
}
