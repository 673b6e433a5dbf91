package stacks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Report groups the workers of a job by their stacks, for rdzv stacks and the report on a stall.
type Report struct {
	Job    string  `json:"name"`   // as status shows it
	Ranks  int     `json:"ranks"`  // number of workers of the job
	Groups []Group `json:"groups"` // the largest first
	// Problems are reasons for which something is not known, with their hosts.
	Problems []Problem `json:"problems,omitempty"`
	// Collectives and Behind are those of the first Node that has them.
	Collectives string `json:"nccl,omitempty"`
	Behind      []int  `json:"behind,omitempty"`
	// NCCL is what NCCL before 2.28.7 says, a text of some lines.
	NCCL string `json:"nccl_report,omitempty"`
}

// Problem is something that is not known about workers on some hosts.
type Problem struct {
	Text  string   `json:"text"`  // the problem
	Hosts []string `json:"hosts"` // the nodes that have it
}

// Group are workers that do the same: they have the same Python stack or, if it is not known, their
// main threads do the same by what the kernel shows. Those that have reached init_process_group are
// apart from those that have not.
type Group struct {
	Workers []Worker `json:"workers"` // in the order of their ranks
}

// Ranks are the ranks of the group.
func (g Group) Ranks() []int {
	ranks := make([]int, len(g.Workers))
	for i, w := range g.Workers {
		ranks[i] = w.Rank
	}
	return ranks
}

// Of is the report on a job, made of what its agents have answered.
func Of(job string, nodes []Node) Report {
	r := Report{Job: job}
	var all []Worker
	for _, n := range nodes {
		r.Ranks = max(r.Ranks, n.Ranks)
		r.add(n.Problem, n.Host)
		if r.Collectives == "" {
			r.Collectives, r.Behind = n.Collectives, n.Behind
		}
		r.NCCL = cmp.Or(r.NCCL, n.NCCL)
		for _, w := range n.Workers {
			w.Host, w.Main.Object = n.Host, named(w.Main.Object, nodes)
			all = append(all, w)
		}
	}
	slices.SortFunc(all, byRank)
	index := map[string]int{}
	for _, w := range all {
		r.add(w.Problem, w.Host)
		i, known := index[w.place()]
		if !known {
			i = len(r.Groups)
			index[w.place()] = i
			r.Groups = append(r.Groups, Group{})
		}
		r.Groups[i].Workers = append(r.Groups[i].Workers, w)
	}
	slices.SortStableFunc(r.Groups, func(a, b Group) int {
		return cmp.Compare(len(b.Workers), len(a.Workers))
	})
	return r
}

// place is equal for workers that do the same. Files and peers do not count: each rank reads its
// own part of the data, and is connected to other ranks.
func (w Worker) place() string {
	place := w.Main.Does
	if len(w.Python) > 0 {
		place = "python\n" + strings.Join(w.Python, "\n")
	}
	if w.Init != nil {
		place += fmt.Sprintf("\n%t", *w.Init)
	}
	return place
}

// named replaces the address at the beginning of an object by the name of its host.
func named(object string, nodes []Node) string {
	for _, n := range nodes {
		for _, prefix := range []string{n.Addr + ":", "[" + n.Addr + "]:"} {
			if port, is := strings.CutPrefix(object, prefix); is && n.Addr != "" {
				return n.Host + ":" + port
			}
		}
	}
	return object
}

// NotReached are the workers that have not reached init_process_group although rank 0 has.
func (r Report) NotReached() (list []Worker) {
	has := func(w Worker) bool { return w.Init != nil && *w.Init }
	if r.single(func(w Worker) bool { return w.Rank == 0 && has(w) }) == nil {
		return nil
	}
	for _, g := range r.Groups {
		for _, w := range g.Workers {
			if w.Init != nil && !*w.Init {
				list = append(list, w)
			}
		}
	}
	slices.SortFunc(list, byRank)
	return list
}

func byRank(a, b Worker) int { return cmp.Compare(a.Rank, b.Rank) }

// Rest are the workers for which the others seem to wait. They are those that have not reached
// init_process_group, where the others wait; without such workers those outside the largest group,
// if that has more than half of all, or else those that do not wait themselves, if they are fewer
// than half, or one of two. There may be none. It is not known where those are whose stack was left
// out.
func (r Report) Rest() (rest []Worker) {
	if len(r.Groups) == 0 {
		return nil
	}
	if late := r.NotReached(); len(late) > 0 {
		return late
	}
	if 2*len(r.Groups[0].Workers) > r.Ranks {
		for _, g := range r.Groups[1:] {
			rest = append(rest, g.Workers...)
		}
	} else if rest = r.busyElsewhere(); 2*len(rest) >= r.Ranks && !(len(rest) == 1 && r.Ranks == 2) {
		return nil
	}
	rest = slices.DeleteFunc(rest, leftOut)
	slices.SortFunc(rest, byRank)
	return rest
}

// busyElsewhere are the workers that do something else than wait for others; none if it is not
// known of all what they do. With NCCL, ranks also wait in busy loops.
func (r Report) busyElsewhere() (list []Worker) {
	known := 0
	for _, g := range r.Groups {
		for _, w := range g.Workers {
			known++
			if waits, is := w.waits(); !is {
				return nil
			} else if !waits {
				list = append(list, w)
			}
		}
	}
	if known < r.Ranks {
		return nil
	}
	return list
}

// waits tells whether a worker waits for other ranks, as far as that can be told: in torch's
// functions for that, or for another thread or process.
func (w Worker) waits() (waits, known bool) {
	if len(w.Python) > 0 {
		return strings.Contains(w.Python[0], "(torch/distributed/"), true
	}
	for _, begin := range []string{
		"running", "waiting for another thread", "waiting for events", "receiving from a TCP",
	} {
		if strings.HasPrefix(w.Main.Does, begin) {
			return true, true
		}
	}
	return false, w.Main.Does != "" && w.Main.Does != "waiting" && w.Problem != LeftOut
}

func leftOut(w Worker) bool { return w.Problem == LeftOut }

// add adds a problem of a host, unless it is "".
func (r *Report) add(text, host string) { r.Problems = added(r.Problems, text, host) }

// added is a list with a text of a host, unless that is "".
func added(list []Problem, text, host string) []Problem {
	i := slices.IndexFunc(list, func(p Problem) bool { return p.Text == text })
	switch {
	case text == "":
	case i < 0:
		list = append(list, Problem{text, []string{host}})
	case !slices.Contains(list[i].Hosts, host):
		list[i].Hosts = append(list[i].Hosts, host)
	}
	return list
}
