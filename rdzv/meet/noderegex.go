package meet

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxNodes is how many names a list of nodes may stand for; more is taken for a mistake, or for malice.
const maxNodes = 1 << 16

var errNodeRegex = errors.New("not a node_regex of Open MPI")

// parseNodeRegex expands OMPI_MCA_orte_node_regex of Open MPI 4: the hosts of the job in the order of its daemons, mpirun's own first.
//
//	node[1:1-3]@0(3)                              node1 node2 node3
//	node[1:1,3,2]@0(3)                            node1 node3 node2
//	n[2:8-10].x,[2:10].77.0.13@0(3)               n08.x n09.x n10.x 10.77.0.13
//
// In brackets stand the width of the numbers and their ranges; what follows the @ is about topologies.
func parseNodeRegex(text string) ([]string, error) {
	text, _, _ = strings.Cut(text, "@")
	var names []string
	for text != "" {
		entry, rest := splitEntry(text)
		text = rest
		some, err := expandEntry(entry, maxNodes-len(names))
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
	}
	if len(names) == 0 {
		return nil, errNodeRegex
	}
	return names, nil
}

// splitEntry cuts at the first comma outside brackets.
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

func expandEntry(entry string, limit int) ([]string, error) {
	prefix, rest, bracket := strings.Cut(entry, "[")
	if limit < 1 {
		return nil, errNodeRegex
	}
	if !bracket {
		return []string{entry}, nil
	}
	inside, suffix, closed := strings.Cut(rest, "]")
	digits, ranges, colon := strings.Cut(inside, ":")
	width, err := strconv.Atoi(digits)
	if !closed || !colon || err != nil || width < 0 || width > 20 || strings.ContainsAny(suffix, "[]") {
		return nil, errNodeRegex
	}
	var names []string
	for r := range strings.SplitSeq(ranges, ",") {
		first, last, err := numberRange(r)
		if err != nil || last-first >= limit-len(names) {
			return nil, errNodeRegex
		}
		for n := first; n <= last; n++ {
			names = append(names, fmt.Sprintf("%s%0*d%s", prefix, width, n, suffix))
		}
	}
	return names, nil
}

// numberRange reads "7" or "7-9".
func numberRange(text string) (first, last int, err error) {
	low, high, two := strings.Cut(text, "-")
	if !two {
		high = low
	}
	first, err1 := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil || first < 0 || last < first || last == math.MaxInt {
		return 0, 0, fmt.Errorf("not a range of numbers: %q", text)
	}
	return first, last, nil
}
