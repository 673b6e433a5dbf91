package agent

import (
	"context"
	"fmt"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/nodecheck"
	"rdzv/rdzv/agent/internal/peers"
	"rdzv/rdzv/check"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/secret"
)

// checking is this agent's part in a check of the nodes.
type checking struct {
	*Check  // nil if the agent runs workers
	local   *Local
	events  *reporter
	conn    *connection
	found   nodecheck.Found
	answers *peers.Server // to other nodes; nil if there is none
}

// inspect finds out what a check is to tell of this node. ctx ends what takes long.
func (c *checking) inspect(ctx context.Context) {
	if c.Check == nil {
		return
	}
	l, config, all := c.local, c.local.Config, c.local.layout()
	node := nodecheck.Node{
		Setup: &l.setup, CPUs: l.CPUs.Count, OneHost: l.Agents == 1 || all.OnOneHost(),
		First: all.FirstOfNode(), Environ: l.workerEnviron(),
	}
	if !node.OneHost {
		node.Networks = l.networks()
	}
	c.found = node.Run(ctx, config.HealthCmd, config.HealthTimeout)
}

// facts are those of this node, with its connection to the store.
func (c *checking) facts() []rdzv.NodeFact {
	if c.Check == nil || c.conn.alone() {
		return c.found.Facts
	}
	config := c.local.Config
	facts := nodecheck.Network(c.conn.address(), c.conn.reached, config.Networks, config.Root)
	return append(facts, c.found.Facts...)
}

// answer answers agents of other nodes that measure their connections to this one, until
// stopAnswering. It returns the address and port; "" if this agent does not answer.
func (c *checking) answer(id string) string {
	c.stopAnswering() // at the address on the way to another store
	all := c.local.layout()
	if c.Check == nil || c.conn.alone() || all.OnOneHost() || !all.FirstOfNode() {
		return ""
	}
	addr := c.conn.address()
	if c.conn.hosting() && len(c.conn.meeting.Addrs) > 1 {
		addr = "" // any: nodes reach the store at different addresses
	}
	server, err := peers.Listen(addr, id, c.peerKey(), time.Now)
	if err != nil {
		c.events.diagnose(Warning, fmt.Errorf("cannot answer other nodes: %w", err))
		return ""
	}
	c.answers = server
	return server.Addr()
}

func (c *checking) stopAnswering() {
	if c.answers != nil {
		c.answers.Close()
		c.answers = nil
	}
}

// peerKey is the job's key, or one that everybody knows with --insecure.
func (c *checking) peerKey() (key secret.Key) {
	if job := c.conn.key(); job != nil {
		key = *job
	}
	return key
}

// report reports on all nodes, on the agent whose leader has gathered their facts.
func (c *checking) report(v *rdzv.Verdict) {
	members := c.conn.gathered.Load()
	if c.Check == nil || members == nil {
		return
	}
	agents := c.local.Agents
	if c.local.layout().Elastic() {
		agents = max(c.local.layout().MinTasks(), record.TasksOf(*members))
	}
	r := check.Of(c.local.Job, agents, *members)
	r.AddProblems(v)
	c.Report(r)
}

// checkConfig lets the leader keep the members for the report, choose which connections are
// measured, and find those that fail; nil for agents that run workers.
func (c *connection) checkConfig() *rdzv.CheckConfig {
	if c.local.Config.Check == nil {
		return nil
	}
	return &rdzv.CheckConfig{
		Gathered: func(members []rdzv.Member) []rdzv.NodeProblem {
			c.gathered.Store(&members)
			return check.Disconnected(members)
		},
		Peers: check.Peers,
	}
}
