package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/nodecheck"
	"rdzv/rdzv/check"
)

// A check is a job of one attempt that runs no workers. Its agents join like those of other jobs,
// but problems do not keep them from getting a world: they are told with the other facts. Then each
// agent finds out what it can tell of its node, and the agent that leads the job asks all for that
// and for their connections, and reports. An agent that has told of its connections settles, as if
// its workers had succeeded; problems are the verdict.

// The questions of the agent that leads. The answers are parts of a check.Node.
const (
	factsQuestion = "facts"
	linksQuestion = "connections" // to check.Targets
)

// checking is this agent's part in a check.
type checking struct {
	m     *membership
	known chan struct{} // closed when node is complete
	told  chan struct{} // closed when this agent has told of its connections

	problems, rank0Problems []rdzv.Problem // that would keep the workers from starting
	node                    check.Node
	stop                    []func() // stop to answer on the ports of this agent
	tell                    sync.Once
}

func newChecking(m *membership) *checking {
	return &checking{m: m, known: make(chan struct{}), told: make(chan struct{})}
}

// take takes the problems of this agent, which then do not end the job.
func (c *checking) take(self *rdzv.Member) {
	c.problems, c.rank0Problems = self.Problems, self.Rank0Problems
	self.Problems, self.Rank0Problems, self.Strict = nil, nil, false
}

// run checks this agent's node, and all of them if this agent leads. v is why there is no world,
// nil if there is one. Then ctx ends with the job.
func (c *checking) run(ctx context.Context, v *rdzv.Verdict) {
	c.inspect(ctx)
	switch {
	case c.m.session.Leads():
		c.lead(ctx, v)
	case v == nil: // otherwise this agent settles, and answers until all have
		select {
		case <-c.told:
		case <-ctx.Done():
		}
	}
}

// close ends the answers on ports. The job must have ended: others may still measure when this
// agent has told of its own connections.
func (c *checking) close() {
	for _, stop := range c.stop {
		stop()
	}
}

// inspect finds out what there is to tell of this node, and begins to answer on its ports. ctx ends
// what takes long.
func (c *checking) inspect(ctx context.Context) {
	defer close(c.known)
	m, l, conn, n := c.m, c.m.local, c.m.conn, &c.node
	config, all := l.Config, l.layout()
	on := nodecheck.Node{
		Setup: &l.setup, CPUs: l.CPUs.Count, OneHost: l.Agents == 1 || all.OnOneHost(),
		First: all.FirstOfNode(), Environ: l.workerEnviron(),
	}
	if !on.OneHost {
		on.Networks = l.networks()
	}
	found := on.Run(ctx, config.HealthCmd, config.HealthTimeout)
	n.Member = m.self.Identity()
	n.Facts, n.Strict, n.Problems = l.facts(), config.Strict, c.problems
	if n.Rank = m.self.FirstTask().Rank; m.worldErr == nil {
		n.Rank = m.world.Seat.First()
	}
	if n.Rank == 0 {
		n.Problems = slices.Concat(n.Problems, c.rank0Problems)
	}
	for _, err := range found.Problems {
		n.Problems = withProblem(n.Problems, err)
	}
	if n.Rank == 0 && m.world.MasterPort != 0 {
		c.serve("MASTER_PORT", m.world.MasterPort)
	}
	if !conn.alone() {
		n.NodeFacts = nodecheck.Network(conn.address(), conn.reached, config.Networks, config.Root)
	}
	n.NodeFacts = append(n.NodeFacts, found.Facts...)
	if conn.alone() || on.OneHost || !on.First {
		return
	}
	if port := c.serve("a port", 0); port != 0 && conn.hosting() {
		n.Answers = net.JoinHostPort("", strconv.Itoa(port))
	} else if port != 0 {
		n.Answers = net.JoinHostPort(conn.address(), strconv.Itoa(port))
	}
}

// serve answers other agents on a port, 0 is a free one. It returns the port; if that fails it
// notes a problem and returns 0.
func (c *checking) serve(what string, port int) int {
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		err = fmt.Errorf("cannot listen on %s: %w", what, err)
		c.node.Problems = withProblem(c.node.Problems, err)
		return 0
	}
	c.stop = append(c.stop, nodecheck.Serve(listener, c.m.self.ID, time.Now))
	return listener.Addr().(*net.TCPAddr).Port
}

// answer answers the agent that leads.
func (c *checking) answer(ctx context.Context, q rdzv.Question) ([]byte, error) {
	select {
	case <-c.known:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	switch q.Kind {
	case factsQuestion:
		return json.Marshal(c.node)
	case linksQuestion:
		defer c.tell.Do(func() { close(c.told) })
		var to check.Targets
		if err := json.Unmarshal([]byte(q.Arg), &to); err != nil {
			return nil, err
		}
		return json.Marshal(c.measure(ctx, to))
	}
	return nil, fmt.Errorf("unknown question %q", q.Kind)
}

// measure measures the connections of this node, on behalf of all its agents.
func (c *checking) measure(ctx context.Context, to check.Targets) (all check.Measured) {
	w, self := c.m.world, c.m.self
	if !c.m.local.FirstOfNode() {
		return all
	}
	targets := to.For(self.ID)
	for i, t := range targets {
		host, port, _ := net.SplitHostPort(t.Addr)
		targets[i].Addr = net.JoinHostPort(cmp.Or(host, self.StoreAddr), port)
	}
	others := len(targets)
	if w.MasterPort != 0 {
		master := net.JoinHostPort(w.MasterAddr, strconv.Itoa(w.MasterPort))
		targets = append(targets, check.Target{ID: to.Rank0, Addr: master})
	}
	measured := nodecheck.Measure(ctx, targets)
	all.Links = measured[:others]
	if others < len(measured) {
		all.Master = &measured[others]
	}
	return all
}

// lead asks all agents, reports, and ends the job if there are problems.
func (c *checking) lead(ctx context.Context, v *rdzv.Verdict) {
	l, joined := c.m.local, 0
	nodes, err := c.ask(ctx, nil, rdzv.Question{Kind: factsQuestion, Within: l.Config.checkTime()})
	slices.SortFunc(nodes, check.Node.Compare)
	if err == nil && v == nil {
		to, _ := json.Marshal(check.TargetsOf(nodes))
		within := nodecheck.MeasureTime + settleMargin
		q := rdzv.Question{Kind: linksQuestion, Arg: string(to), Within: within}
		nodes, err = c.ask(ctx, nodes, q)
	}
	if ctx.Err() != nil {
		return // the job has ended
	}
	for _, n := range nodes {
		joined += len(n.Tasks)
	}
	tasks := l.Agents
	if l.layout().Elastic() {
		tasks = max(l.layout().MinTasks(), joined)
	}
	r := check.Of(l.Job, tasks, nodes)
	r.AddProblems(v)
	if err != nil {
		r.Problems = append(r.Problems, check.Finding{Text: err.Error(), Hint: Hint(err)})
	}
	l.Config.Check.Report(r)
	if problems := r.VerdictProblems(); len(problems) > 0 && v == nil {
		c.m.events.write(func(ctx context.Context) error { return c.m.session.Refuse(ctx, problems) })
	}
}

// ask asks all agents, and adds to what is known of their nodes.
func (c *checking) ask(
	ctx context.Context, nodes []check.Node, q rdzv.Question,
) ([]check.Node, error) {
	answers, missing, err := c.m.session.Ask(ctx, q)
	return withAnswers(nodes, q, answers, missing), err
}

// withAnswers adds the answers to what is known of the nodes. That an agent has not answered is a
// problem of its node.
func withAnswers(
	nodes []check.Node, q rdzv.Question, answers []rdzv.Answer, missing []rdzv.Peer,
) []check.Node {
	of := func(p rdzv.Peer) *check.Node {
		i := slices.IndexFunc(nodes, func(n check.Node) bool { return n.ID == p.ID })
		if i < 0 {
			self := rdzv.Member{ID: p.ID, Host: p.Host, PID: p.PID, Tasks: make([]rdzv.Task, p.Tasks)}
			nodes, i = append(nodes, check.Node{Member: self}), len(nodes)
		}
		return &nodes[i]
	}
	failed := func(p rdzv.Peer, why string) {
		n := of(p)
		n.Problems = withProblem(n.Problems,
			fmt.Errorf("cannot check the node: its agent has not told its %s: %s", q.Kind, why))
	}
	for _, a := range answers {
		if a.Error != "" {
			failed(a.Peer, a.Error)
		} else if err := json.Unmarshal(a.Value, of(a.Peer)); err != nil {
			failed(a.Peer, err.Error())
		}
	}
	for _, p := range missing {
		failed(p, fmt.Sprintf("no answer for %v", q.Within))
	}
	return nodes
}

// workers are those of this agent as if they had succeeded.
func (c *checking) workers() (list []rdzv.Worker) {
	seat := c.m.world.Seat
	for i := range seat.Workers() {
		list = append(list, rdzv.Worker{Rank: seat.RankOf(i), LocalRank: seat.LocalRankOf(i)})
	}
	return list
}

// checkTime is how long an agent may take to find out what it tells of its node.
func (c *Config) checkTime() time.Duration {
	return 2*(c.HealthTimeout+nodecheck.LookTime) + settleMargin
}
