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
	ranges [][2]int // first and last
}

// ParseRanks reads ranks such as "0,4-7" or "none"; "" is all of them.
func ParseRanks(text string) (Ranks, error) {
	r := Ranks{all: text == ""}
	if text == "" || text == "none" {
		return r, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, errFirst := strconv.ParseUint(from, 10, 31)
		last, errLast := strconv.ParseUint(to, 10, 31)
		if errFirst != nil || errLast != nil || first > last {
			return r, fmt.Errorf("%q: must be ranks, such as 0 or 0,4-7, or none", text)
		}
		r.ranges = append(r.ranges, [2]int{int(first), int(last)})
	}
	return r, nil
}

// Has tells whether rank is one of them.
func (r Ranks) Has(rank int) bool {
	for _, s := range r.ranges {
		if s[0] <= rank && rank <= s[1] {
			return true
		}
	}
	return r.all
}

// Count is how many ranks of a world of size they are.
func (r Ranks) Count(size int) (n int) {
	for rank := range size {
		if r.Has(rank) {
			n++
		}
	}
	return n
}
