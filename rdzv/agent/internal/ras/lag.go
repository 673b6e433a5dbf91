package ras

import (
	"cmp"
	"fmt"
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

// maxNamed limits the ranks, the counts and the communicators that a text names.
const maxNamed = 4

// Lag compares the ranks of a job of so many.
func (r Report) Lag(world int) (l Lag) {
	global := r.globalRanks(world)
	var texts []string
	left := 0
	for _, c := range r.Comms {
		for _, op := range c.Ops {
			if len(op.Groups) < 2 {
				continue
			}
			l.addBehind(op.Groups[0], c.Size, world, global)
			if len(texts) == maxNamed {
				left++
				continue
			}
			texts = append(texts, op.text(c.Size, world, global))
		}
	}
	texts = append(texts, r.missing(&l, world, global)...)
	switch {
	case left > 0:
		texts = append(texts, fmt.Sprintf("and %d more differences", left))
	case len(texts) == 0 && r.Count == 0:
		return l
	case len(texts) == 0:
		texts = append(texts, "all ranks are in the same collective")
	}
	slices.Sort(l.Behind)
	l.Behind = slices.Compact(l.Behind)
	l.Text = strings.Join(texts, "; ")
	return l
}

// addBehind adds the members of the group that is behind, if it is the smaller part of its
// communicator.
func (l *Lag) addBehind(g Group, size, world int, global map[Member]int) {
	if 2*g.N > size {
		return
	}
	for _, m := range g.Members {
		if rank := rankOf(m, size, world, global); rank >= 0 {
			l.Behind = append(l.Behind, rank)
		}
	}
}

// missing names the ranks of which NCCL knows nothing.
func (r Report) missing(l *Lag, world int, global map[Member]int) (texts []string) {
	for _, c := range r.Comms {
		if len(c.Missing) == 0 || len(texts) == maxNamed {
			continue
		}
		texts = append(texts, "NCCL has no answer from "+names(c.Missing, c.Size, world, global))
		l.addBehind(Group{N: len(c.Missing), Members: c.Missing}, c.Size, world, global)
	}
	return texts
}

// globalRanks are the ranks in the job of the processes in the communicator of all ranks.
func (r Report) globalRanks(world int) map[Member]int {
	all := map[Member]int{}
	for _, c := range r.Comms {
		if c.Size != world {
			continue
		}
		for m := range c.members() {
			all[Member{0, m.Host, m.PID}] = m.Rank
		}
		break
	}
	return all
}

func (c Comm) members() func(yield func(Member) bool) {
	return func(yield func(Member) bool) {
		for _, op := range c.Ops {
			for _, g := range op.Groups {
				for _, m := range g.Members {
					if !yield(m) {
						return
					}
				}
			}
		}
		for _, m := range c.Missing {
			if !yield(m) {
				return
			}
		}
	}
}

// rankOf is the rank in the job of a member of a communicator, -1 if it is not known.
func rankOf(m Member, size, world int, global map[Member]int) int {
	if size == world {
		return m.Rank
	}
	if rank, known := global[Member{0, m.Host, m.PID}]; known && m.PID > 0 {
		return rank
	}
	return -1
}

// text is "rank 5 is at all_reduce 6649, the other 31 at 6650".
func (op Op) text(size, world int, global map[Member]int) string {
	var parts []string
	for i, g := range op.Groups {
		last := i == len(op.Groups)-1
		if i == maxNamed-1 && !last {
			parts = append(parts, fmt.Sprintf("and others up to %d", op.Groups[len(op.Groups)-1].Count))
			break
		}
		who := names(g.Members, size, world, global)
		switch few := g.N == len(g.Members) && g.N <= maxNamed; {
		case last && !few:
			who = fmt.Sprintf("the other %d", g.N)
		case !few:
			who = fmt.Sprintf("%d ranks", g.N)
		}
		part := fmt.Sprintf("%s at %d", who, g.Count)
		if i == 0 {
			part = fmt.Sprintf("%s %s at %s %d", who, be(g.N), name(op.Name), g.Count)
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, ", ")
	if size != world {
		text += fmt.Sprintf(" (of a communicator of %d)", size)
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

// names is "rank 5", "ranks 1,2,3,4 and 3 more", or with processes if the ranks in the job are not
// known.
func names(members []Member, size, world int, global map[Member]int) string {
	var ranks, processes []string
	for _, m := range members[:min(len(members), maxNamed)] {
		if rank := rankOf(m, size, world, global); rank >= 0 {
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

// Launched is how many operations each rank of the job has launched in all of its communicators, -1
// where that is not known; nil if it is not known of any.
func (r Report) Launched(world int) []int64 {
	if !r.Complete || world < 1 || world > maxSize {
		return nil
	}
	global, list, known := r.globalRanks(world), make([]int64, world), false
	for i := range list {
		list[i] = -1
	}
	for _, c := range r.Comms {
		for _, op := range c.Ops {
			for _, g := range op.Groups {
				for _, m := range g.Members {
					if rank := rankOf(m, c.Size, world, global); rank >= 0 && rank < world {
						list[rank] = max(list[rank], 0) + int64(g.Count&(1<<62-1))
						known = true
					}
				}
			}
		}
	}
	if !known {
		return nil
	}
	return list
}
