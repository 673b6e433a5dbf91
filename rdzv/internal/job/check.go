package job

import (
	"fmt"
	"net"
	"slices"

	"rdzv/rdzv/internal/record"
)

// check returns the verdict of a job that cannot start, which has no problems if it can. problem is
// why there is no world.
func (s *State) check(all []Member, problem *Problem) Verdict {
	s.gathered(all)
	v := record.VerdictOf(record.Unready)
	v.Problems, v.MoreProblems = ProblemsOf(all)
	if problem != nil && len(v.Problems) == 0 {
		v.Problems = []NodeProblem{{Problem: *problem}}
	}
	different, more := s.compare(all)
	v.Problems, v.MoreProblems = append(v.Problems, different...), v.MoreProblems+more
	return v
}

// compare compares the facts of all members. It returns the differences that are problems, or the
// first of them and the number of the others.
func (s *State) compare(members []Member) (problems []NodeProblem, more int) {
	all := Compare(s.attempt.gather.exports.Without(members))
	strict := slices.ContainsFunc(members, func(m Member) bool { return m.Strict })
	if !s.attempt.later {
		s.notify(Compared{all, strict})
	}
	for _, c := range all {
		if strict && c.Differs() {
			text := record.Clip(fmt.Sprintf("cannot start: %v (Config.Strict)", c))
			problems = append(problems, NodeProblem{
				Problem: Problem{Kind: record.DifferenceProblem, Text: text},
			})
		}
	}
	return record.Cut(problems)
}

// ends tells whether the problems of a verdict end the job before workers are started. A job that
// only checks goes on with them.
func (s *State) ends(v Verdict) bool {
	s.attempt.end.found = v
	return len(v.Problems) > 0 && s.config.Check == nil
}

func (s *State) gathered(all []Member) []NodeProblem {
	if s.config.Check == nil {
		return nil
	}
	return s.config.Check.Gathered(InOrder(s.attempt.gather.exports.Without(all)))
}

// result is the verdict when all workers have succeeded, or all nodes have been checked.
func (s *State) result() Verdict {
	if s.config.Check == nil {
		return record.VerdictOf(record.Done)
	}
	links, more := record.Cut(s.gathered(s.attempt.members.present()))
	v := s.attempt.end.found
	v.MoreProblems += more
	for _, p := range links {
		p.Hosts, p.MoreHosts = record.Cut(p.Hosts)
		v.Problems = append(v.Problems, p)
	}
	if len(v.Problems) == 0 {
		return record.VerdictOf(record.Done)
	}
	return v
}

// assignProbeTargets returns to which agents those that answer others, one of each node, are to
// measure the connections.
func (s *State) assignProbeTargets(members []Member) map[string][]Endpoint {
	if s.config.Check == nil {
		return nil
	}
	nodes := NodesOf(InOrder(members))
	agents := make([]Member, len(nodes))
	for i, node := range nodes {
		at := slices.IndexFunc(node, func(m Member) bool { return m.Answers != "" })
		agents[i] = node[max(at, 0)]
	}
	peers := map[string][]Endpoint{}
	for i, m := range agents {
		for _, to := range s.config.Check.Peers(i, len(nodes)) {
			if peer := agents[to]; m.Answers != "" && peer.Answers != "" {
				peers[m.ID] = append(peers[m.ID], Endpoint{ID: peer.ID, Addr: endpoint(peer, m)})
			}
		}
	}
	return peers
}

// endpoint is the address and port at which an agent answers another one.
func endpoint(peer, from Member) string {
	_, port, err := net.SplitHostPort(peer.Answers)
	if err != nil || !peer.Hosting || from.StoreAddr == "" {
		return peer.Answers
	}
	return net.JoinHostPort(from.StoreAddr, port)
}
