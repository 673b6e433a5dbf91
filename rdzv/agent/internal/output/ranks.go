// Package output is about what an agent does with the output of its workers: which ranks are shown,
// and the files in which it is kept.
package output

import (
	"fmt"
	"strconv"
	"strings"
)

// Ranks are ranks of a job.
type Ranks struct {
	all    bool
	local  bool     // local ranks, those of each node
	ranges [][2]int // first and last
}

// ParseRanks reads ranks such as "0,4-7", local ranks such as "local:0", or "none"; "" is all of
// them.
func ParseRanks(text string) (Ranks, error) {
	r := Ranks{all: text == ""}
	if text == "" || text == "none" {
		return r, nil
	}
	list, local := strings.CutPrefix(text, "local:")
	r.local = local
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, errFirst := strconv.ParseUint(from, 10, 31)
		last, errLast := strconv.ParseUint(to, 10, 31)
		if errFirst != nil || errLast != nil || first > last {
			return r, fmt.Errorf("%q: must be ranks, such as 0 or 0,4-7, local:0, or none", text)
		}
		r.ranges = append(r.ranges, [2]int{int(first), int(last)})
	}
	return r, nil
}

// Has tells whether the rank with this local rank is one of them.
func (r Ranks) Has(rank, localRank int) bool {
	if r.local {
		rank = localRank
	}
	for _, s := range r.ranges {
		if s[0] <= rank && rank <= s[1] {
			return true
		}
	}
	return r.all
}

// Count is how many ranks they are of a world of size, whose nodes have localSize each.
func (r Ranks) Count(size, localSize int) (n int) {
	if r.local && localSize < size {
		return r.Count(localSize, localSize) * (size / localSize)
	}
	for rank := range size {
		if r.Has(rank, rank) {
			n++
		}
	}
	return n
}
