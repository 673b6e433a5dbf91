package ras

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Lag says which ranks are behind the others.
type Lag struct {
	// Text is a phrase: "rank 5 is at all_reduce 6649, the other 31 at 6650"; "" if nothing is known.
	Text string
	// Behind are ranks of the job that are behind, or do not answer; nil if none is known to be.
	Behind []int
}

// maxNamed limits the ranks and the differences that a text names.
const maxNamed = 4

// Lag compares the ranks of a job of so many.
func (r Report) Lag(world int) (l Lag) {
	in := r.job(world)
	var texts []string
	for _, c := range r.Comms {
		for _, op := range c.operations() {
			behind, least, most := c.behind(op)
			if len(behind) == 0 {
				continue
			}
			at, others := "at", len(c.counted(op))-len(behind)
			if !c.twoCounts(op, least, most) {
				at = "at up to"
			}
			text := fmt.Sprintf("%s %s at %s %d, the other %d %s %d", in.names(c, behind),
				be(len(behind)), name(op), least, others, at, most)
			if c.Size != world {
				text += fmt.Sprintf(" (of a communicator of %d)", c.Size)
			}
			texts = append(texts, text)
			l.add(in, c, behind)
		}
	}
	for _, c := range r.Comms {
		if len(c.Missing) > 0 {
			texts = append(texts, "NCCL has no answer from "+in.names(c, c.Missing))
			l.add(in, c, c.Missing)
		}
	}
	switch n := len(texts) - maxNamed; {
	case n > 0:
		texts = append(texts[:maxNamed], fmt.Sprintf("and %d more differences", n))
	case len(texts) == 0 && len(r.Comms) > 0:
		texts = append(texts, "all ranks are in the same collective")
	}
	slices.Sort(l.Behind)
	l.Behind = slices.Compact(l.Behind)
	l.Text = strings.Join(texts, "; ")
	return l
}

// add adds members of a communicator, if they are its smaller part.
func (l *Lag) add(in job, c Comm, list []Member) {
	if 2*len(list) > c.Size {
		return
	}
	for _, m := range list {
		if rank := in.rankOf(c, m); rank >= 0 {
			l.Behind = append(l.Behind, rank)
		}
	}
}

// operations are the names of the operations that are counted.
func (c Comm) operations() []string {
	names := map[string]bool{}
	for _, m := range c.Ranks {
		for op := range m.Counts {
			names[op] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// counted are the ranks that count an operation.
func (c Comm) counted(op string) []Member {
	return slices.DeleteFunc(slices.Clone(c.Ranks), func(m Member) bool {
		_, counts := m.Counts[op]
		return !counts
	})
}

// behind are the ranks that have launched fewer of an operation than the one that has launched
// most, and what those with the fewest have; none if all have launched as many.
func (c Comm) behind(op string) (list []Member, least, most uint64) {
	all := c.counted(op)
	for i, m := range all {
		if i == 0 || m.Counts[op] < least {
			least = m.Counts[op]
		}
		most = max(most, m.Counts[op])
	}
	if least == most {
		return nil, least, most
	}
	for _, m := range all {
		if m.Counts[op] == least {
			list = append(list, m)
		}
	}
	return list, least, most
}

// twoCounts tells whether each rank has launched least or most of an operation.
func (c Comm) twoCounts(op string, least, most uint64) bool {
	return !slices.ContainsFunc(c.counted(op), func(m Member) bool {
		return m.Counts[op] != least && m.Counts[op] != most
	})
}

// process is a member of the communicator of all ranks.
type process struct {
	host string
	pid  int
}

// job knows the ranks in the job of so many of the processes in the communicator of all ranks.
type job struct {
	world int
	ranks map[process]int
}

func (r Report) job(world int) job {
	in := job{world, map[process]int{}}
	for _, c := range r.Comms {
		if c.Size == world {
			for _, m := range slices.Concat(c.Ranks, c.Missing) {
				in.ranks[process{m.Host, m.PID}] = m.Rank
			}
			break
		}
	}
	return in
}

// rankOf is the rank in the job of a member of a communicator, -1 if it is not known.
func (in job) rankOf(c Comm, m Member) int {
	if c.Size == in.world {
		return m.Rank
	}
	if rank, known := in.ranks[process{m.Host, m.PID}]; known && m.PID > 0 {
		return rank
	}
	return -1
}

// names is "rank 5", "ranks 1,2,3,4 and 3 more", or with processes if the ranks in the job are not
// known.
func (in job) names(c Comm, members []Member) string {
	var ranks, processes []string
	for _, m := range members[:min(len(members), maxNamed)] {
		if rank := in.rankOf(c, m); rank >= 0 {
			ranks = append(ranks, strconv.Itoa(rank))
		} else {
			processes = append(processes, fmt.Sprintf("pid %d on %s", m.PID, m.Host))
		}
	}
	text := strings.Join(processes, ", ")
	if len(ranks) > 0 {
		noun := "rank "
		if len(ranks) > 1 {
			noun = "ranks "
		}
		text = noun + strings.Join(append([]string{strings.Join(ranks, ",")}, processes...), ", ")
	}
	if n := len(members) - maxNamed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func be(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// name returns torch's name of an operation of NCCL: "all_reduce" for "AllReduce". Without a name
// it is "collective".
func name(op string) string {
	var b strings.Builder
	for i, r := range op {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return cmp.Or(b.String(), "collective")
}

// Launched is how many operations each rank of the job has launched in all of its communicators, -1
// where that is not known; nil if it is not known of any.
func (r Report) Launched(world int) []int64 {
	if world < 1 || world > maxSize {
		return nil
	}
	in, list, known := r.job(world), make([]int64, world), false
	for i := range list {
		list[i] = -1
	}
	for _, c := range r.Comms {
		for _, m := range c.Ranks {
			rank := in.rankOf(c, m)
			if rank < 0 || rank >= world {
				continue
			}
			for _, n := range m.Counts {
				list[rank], known = max(list[rank], 0)+int64(n&(1<<62-1)), true
			}
		}
	}
	if !known {
		return nil
	}
	return list
}

// Progressed tells whether ranks have launched collective operations, or made communicators,
// between two reports. A rank that does not answer any more is no progress.
func Progressed(before, after Report) bool {
	old := before.byID()
	for id, c := range after.byID() {
		was, known := old[id]
		if !known && len(c.Ranks) > 0 {
			return true
		}
		counts := map[int]map[string]uint64{} // by rank
		for _, m := range was.Ranks {
			counts[m.Rank] = m.Counts
		}
		for _, m := range c.Ranks {
			for op, n := range m.Counts {
				if before, counted := counts[m.Rank][op]; counted && before != n {
					return true
				}
			}
		}
	}
	return false
}

// byID are the communicators; of those with the same ID the first one.
func (r Report) byID() map[string]Comm {
	all := map[string]Comm{}
	for _, c := range r.Comms {
		if _, known := all[c.id()]; !known {
			all[c.id()] = c
		}
	}
	return all
}
