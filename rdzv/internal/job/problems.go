package job

import (
	"maps"
	"slices"

	"rdzv/rdzv/internal/record"
)

// problems finds what keeps a job from starting: problems of its members, and differences between
// their nodes.
type problems struct {
	phase *phase
	found record.Verdict // of a job that may not start
}

// mayStart tells whether the job may start with these members; otherwise found is its verdict.
// problem is why there is no world.
func (p *problems) mayStart(t *turn, all []record.Member, problem *record.Problem) bool {
	v := record.VerdictOf(record.Unready)
	v.Problems, v.MoreProblems = problemsOf(all)
	if problem != nil && len(v.Problems) == 0 {
		v.Problems = []record.NodeProblem{{Problem: *problem}}
	}
	different, more := p.compare(t, all)
	v.Problems, v.MoreProblems = append(v.Problems, different...), v.MoreProblems+more
	p.found = v
	return len(v.Problems) == 0
}

// compare compares the facts of all members. It returns the differences that are problems, or the
// first of them and the number of the others.
func (p *problems) compare(
	t *turn, members []record.Member,
) (differences []record.NodeProblem, more int) {
	all := record.Compare(members)
	strict := slices.ContainsFunc(members, func(m record.Member) bool { return m.Strict })
	for _, one := range all {
		if problem, is := one.Problem(strict); is {
			differences = append(differences, record.NodeProblem{Problem: problem})
		} else if one.Differs() && !p.phase.later {
			t.notify(record.NodesDiffer{Comparison: one})
		}
	}
	return record.Cut(differences)
}

// problemsOf returns the problems of all members, sorted by text and grouped, and the number of
// those that are not shown.
func problemsOf(members []record.Member) (problems []record.NodeProblem, more int) {
	having := map[string][]record.Member{} // by text
	byText := map[string]record.Problem{}
	for _, m := range members {
		for _, p := range m.Problems {
			having[p.Text], byText[p.Text] = append(having[p.Text], m), p
		}
	}
	several := len(record.HostsOf(members)) > 1
	texts, more := record.Cut(slices.Sorted(maps.Keys(byText)))
	for _, text := range texts {
		p := record.NodeProblem{Problem: byText[text]}
		if several {
			p.Hosts, p.MoreHosts = record.Cut(record.HostsOf(having[text]))
		}
		problems = append(problems, p)
	}
	return problems, more
}
