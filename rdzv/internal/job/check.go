package job

import (
	"fmt"
	"maps"
	"net"
	"slices"

	"rdzv/rdzv/internal/placement"
	"rdzv/rdzv/internal/record"
)

// checking finds what keeps a job from starting: problems of its members, and differences between
// their nodes. A job that only checks goes on with them.
type checking struct {
	config *Config
	phase  *phase
	found  Verdict // with whose problems a job with Check ends
}

// mayStart tells whether the job may start with these members; otherwise found is its verdict.
// problem is why there is no world.
func (c *checking) mayStart(t *turn, all []Member, problem *Problem) bool {
	c.gathered(all)
	v := record.VerdictOf(record.Unready)
	v.Problems, v.MoreProblems = problemsOf(all)
	if problem != nil && len(v.Problems) == 0 {
		v.Problems = []NodeProblem{{Problem: *problem}}
	}
	different, more := c.compare(t, all)
	v.Problems, v.MoreProblems = append(v.Problems, different...), v.MoreProblems+more
	c.found = v
	return problem == nil && (len(v.Problems) == 0 || c.config.Check != nil)
}

// compare compares the facts of all members. It returns the differences that are problems, or the
// first of them and the number of the others.
func (c *checking) compare(t *turn, members []Member) (problems []NodeProblem, more int) {
	all := record.Compare(c.phase.exports.Without(members))
	strict := slices.ContainsFunc(members, func(m Member) bool { return m.Strict })
	if !c.phase.later {
		t.notify(Compared{all, strict})
	}
	for _, one := range all {
		p := Problem{Kind: record.DifferenceProblem}
		switch {
		case one.LackGPUs():
			p.Text = fmt.Sprintf("cannot start one worker per GPU: %v", one)
			p.Hint = "leave out the nodes without a GPU, or give Config.ProcsPerNode N on all nodes"
		case strict && one.Differs():
			p.Text = fmt.Sprintf("cannot start: %v (Config.Strict)", one)
		default:
			continue
		}
		p.Text = record.Clip(p.Text)
		problems = append(problems, NodeProblem{Problem: p})
	}
	return record.Cut(problems)
}

func (c *checking) gathered(all []Member) []NodeProblem {
	if c.config.Check == nil {
		return nil
	}
	return c.config.Check.Gathered(placement.InOrder(c.phase.exports.Without(all)))
}

// result is the verdict when all workers have succeeded, or all nodes have been checked.
func (c *checking) result(all []Member) Verdict {
	if c.config.Check == nil {
		return record.VerdictOf(record.Done)
	}
	links, more := record.Cut(c.gathered(all))
	v := c.found
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
func (c *checking) assignProbeTargets(members []Member) map[string][]Endpoint {
	if c.config.Check == nil {
		return nil
	}
	nodes := placement.NodesOf(placement.InOrder(members))
	agents := make([]Member, len(nodes))
	for i, node := range nodes {
		at := slices.IndexFunc(node, func(m Member) bool { return m.Answers != "" })
		agents[i] = node[max(at, 0)]
	}
	peers := map[string][]Endpoint{}
	for i, m := range agents {
		for _, to := range c.config.Check.Peers(i, len(nodes)) {
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

// problemsOf returns the problems of all members, sorted by text and grouped, and the number of
// those that are not shown.
func problemsOf(members []Member) (problems []NodeProblem, more int) {
	having := map[string][]Member{} // by text
	byText := map[string]Problem{}
	for _, m := range members {
		for _, p := range m.Problems {
			having[p.Text], byText[p.Text] = append(having[p.Text], m), p
		}
	}
	several := len(record.HostsOf(members)) > 1
	texts, more := record.Cut(slices.Sorted(maps.Keys(byText)))
	for _, text := range texts {
		p := NodeProblem{Problem: byText[text]}
		if several {
			p.Hosts, p.MoreHosts = record.Cut(record.HostsOf(having[text]))
		}
		problems = append(problems, p)
	}
	return problems, more
}
