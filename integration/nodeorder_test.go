package integration

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Without a launcher the nodes have the same order in every job, whichever agent starts first:
// that of their names, with the host of --store first, or that of --node-rank.
func TestNodeOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for range 10 {
		order := rand.Perm(3)
		t.Run(fmt.Sprint("names/", order), func(t *testing.T) {
			c.newPlace(t).startInOrder(order, layout{"node1", "node2", "node3"})
		})
	}
	for range 3 {
		order := rand.Perm(3)
		t.Run(fmt.Sprint("store/", order), func(t *testing.T) {
			want := layout{"node2", "node1", "node3"}
			c.newPlace(t).startInOrder(order, want, "--store", "node2")
		})
	}
	t.Run("nodeRank", func(t *testing.T) {
		p := c.newPlace(t)
		var agents []*process
		for i, host := range []int{3, 1, 2} {
			agents = append(agents, p.on(host,
				p.exec("--nodes", "3", "--node-rank", fmt.Sprint(i))...))
		}
		p.check(layout{"node3", "node1", "node2"}, agents...)
	})
	t.Run("nodeRankMissing", func(t *testing.T) {
		p := c.newPlace(t)
		first := p.on(1, p.exec("--nodes", "2", "--node-rank", "0")...)
		checkCodes(121, first, p.on(2, p.exec("--nodes", "2")...))
		if len(first.linesWith("node1 (pid ", " has node rank 0", "node2 (pid ",
			" has none")) == 0 {
			t.Errorf("an agent printed %q, want a line about both", first.linesWith("rdzv:"))
		}
	})
}

// startInOrder starts an agent on each host, in that order.
func (p *clusterPlace) startInOrder(order []int, want layout, flags ...string) {
	p.t.Helper()
	line := p.exec(append([]string{"--nodes", fmt.Sprint(len(order))}, flags...)...)
	var agents []*process
	for _, i := range order {
		agents = append(agents, p.on(i+1, line...))
	}
	p.check(want, agents...)
}

// The same command is started twice on one of two hosts: the agent that joins later is refused, and
// the job that waits starts with the other one. With two names there are two jobs.
func TestSameCommandTwice(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	t.Run("store", func(t *testing.T) {
		c.newPlace(t).startTwice("hosting the store", "--store", "node1")
	})
	t.Run("multicast", func(t *testing.T) {
		c.newPlace(t).startTwice("no other agent has connected after 3s")
	})
	t.Run("twoNames", func(t *testing.T) {
		p := c.newPlace(t)
		var agents []*process
		for _, job := range []string{"a", "b"} {
			line := rdzvExec([]string{"--nodes", "2", "--job", job}, peer(p.dir(job)))
			agents = append(agents, p.on(1, line...), p.on(2, line...))
		}
		checkCodes(0, agents...)
		for _, job := range []string{"a", "b"} {
			checkLayout(t, records(t, p.dir(job), 2), layout{"node1", "node2"})
		}
	})
}

// startTwice starts the second agent of node1 when the first one has printed that it waits.
func (p *clusterPlace) startTwice(waits string, flags ...string) {
	line := p.exec(slices.Concat([]string{"-v", "--nodes", "2"}, flags)...)
	first := p.on(1, line...)
	first.waitFor(waits)
	refused := p.on(1, line...)
	refused.checkCode(125)
	for _, want := range []string{
		"the job already has an agent on this host: pid ", "give each its own --job NAME",
		"give each agent its own --node-rank",
	} {
		if len(refused.linesWith(want)) != 1 {
			p.t.Errorf("the refused agent printed %q, want %q", refused.linesWith("rdzv:"), want)
		}
	}
	checkCodes(0, first, p.on(2, line...))
	checkLayout(p.t, records(p.t, p.dir("job"), 2), layout{"node1", "node2"})
}
