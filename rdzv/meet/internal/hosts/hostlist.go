package hosts

import (
	"fmt"
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
	numbers, err := expandNumbers(inside, limit)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range numbers {
		if suffix == "" {
			names = append(names, prefix+n)
			continue
		}
		tails, err := expandHosts(suffix, limit-len(names))
		if err != nil {
			return nil, err
		}
		for _, tail := range tails {
			names = append(names, prefix+n+tail)
		}
	}
	if len(names) > limit {
		return nil, errHostlist
	}
	return names, nil
}

// expandNumbers expands "1-3,07" to 1 2 3 07.
func expandNumbers(text string, limit int) ([]string, error) {
	var numbers []string
	for r := range strings.SplitSeq(text, ",") {
		first, last, err := numberRange(r)
		if err != nil || last-first >= limit-len(numbers) {
			return nil, errHostlist
		}
		width := 0
		if low, _, _ := strings.Cut(r, "-"); strings.HasPrefix(low, "0") {
			width = len(low)
		}
		if width > 20 {
			return nil, errHostlist
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", width, n))
		}
	}
	return numbers, nil
}
