package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/shell"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/exports"
	"rdzv/rdzv/agent/internal/health"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/torchport"
	"rdzv/wrap"
)

// membership is this agent's part in the job, from joining until it has left.
type membership struct {
	local    *Local
	events   *reporter
	joinBy   time.Time // deadline for all agents to join; zero is none
	conn     *connection
	port     torchport.Port // MASTER_PORT, if this agent may run rank 0
	self     rdzv.Member    // as published
	session  *rdzv.Session
	world    rdzv.World
	lease    wrap.Lease     // of the workers of all attempts
	worldErr error          // why there is no world
	otherJob string         // that of the store, if RDZV_JOIN has led to another one than this agent's
	later    bool           // there was an attempt before this one; world is then the last one
	unready  []rdzv.Problem // why the workers cannot start with what rank 0's agent exports

	checking *checking     // nil if the agent runs workers
	health   *health.Check // of this node, for this attempt; nil if it is not checked

	observed *observed
	reported chan struct{} // closed when the job's end has been reported; nil before it runs
}

// join meets the other agents, becomes a member, and waits until all agents have joined or the job
// has ended. If all members of this store move to another one, it begins again there. The
// interrupts end it.
func (m *membership) join(in *interrupts) error {
	ctx := in.joining
	release, err := claimHost(ctx, m.local, m.events)
	if err != nil {
		return cmp.Or(refused(err, m.local.Job), err)
	}
	defer release()
	err = m.joinAt(ctx, m.conn.connect(ctx))
	for err == nil {
		in.joined(m.session)
		m.observed.joined(m.self.ID, m.session)
		m.awaitWorld()
		if !m.goesOn() {
			return nil
		}
		m.settle(nil)
		if _, err := m.session.Leave(context.Background()); err != nil {
			m.events.diagnose(Verbose, err) // the other store is searched for in any case
		}
		err = m.joinAt(ctx, m.conn.again(ctx))
	}
	m.port.Release()
	return err
}

// goesOn tells whether the job continues at another store than this one: because all members move
// to it, or because a shared store was lost, which the agents that wait for others survive.
func (m *membership) goesOn() bool {
	if m.conn.sharedStore() && errors.Is(m.worldErr, rdzv.ErrStoreLost) {
		m.events.diagnose(Warning, fmt.Errorf("%w; looking for it, because no worker was started",
			m.conn.lost(m.worldErr)))
		return true
	}
	v, ok := errors.AsType[*rdzv.Verdict](m.worldErr)
	return ok && v.Kind == rdzv.Moved
}

// awaitWorld waits for the world, and takes what rank 0's agent exports.
func (m *membership) awaitWorld() {
	world, err := m.session.World(context.Background())
	m.conn.agreed()
	if m.worldErr = err; err != nil {
		return
	}
	m.world = world
	m.takeExports()
	if !m.world.Seat.Has(0) {
		m.port.Release()
	}
	m.events.send(WorldAgreed{m.world, m.attempt().announcer().Restart()})
	m.notePerGPU()
}

// takeExports gives this agent's workers what rank 0's agent exports, and notes what then keeps
// them from starting. If files do not respond it waits until the attempt ends.
func (m *membership) takeExports() {
	e := m.world.Exports
	if !m.later {
		noteExports(m.local, m.events, m.world)
	}
	m.unready = nil
	if e == nil || m.world.Seat.Spare {
		return
	}
	exported, err := exports.Open(e.Sealed, m.conn.key(), m.conn.external())
	if err == nil && m.local.take(m.session.Context(), m.events, exported) != nil {
		return // no worker starts any more
	}
	problems := withProblem(m.problems(), err)
	if m.checking != nil {
		m.checking.problems = problems
	} else {
		m.unready = problems
	}
}

// joinAt becomes a member in the store that was found, unless err says that none was, or in another
// one. If it returns an error it has closed the connection.
func (m *membership) joinAt(ctx context.Context, err error) error {
	for err == nil {
		if err = m.enter(ctx); err == nil {
			return nil
		}
		// The store of an earlier job may still exist, or close at this moment: its host leaves
		// last. The store of this job starts beside it or after it.
		if !errors.Is(err, rdzv.ErrClosed) && !errors.Is(err, rdzv.ErrStoreLost) || m.conn.hosting() {
			break
		}
		err = m.conn.again(ctx)
	}
	no := refused(err, m.local.Job)
	if no != nil {
		m.conn.leaveStore() // the job goes on: there is no end to wait for
		err = no
	}
	m.conn.close()
	return err
}

// enter makes this agent a member in the store that was found.
func (m *membership) enter(ctx context.Context) (err error) {
	if err := m.conn.dial(ctx); err != nil {
		return err
	}
	found := StoreFound{
		Hosting: m.conn.hosting(), Leads: m.conn.hosting(), Addr: m.conn.store(), Own: m.conn.addr,
		Addrs: m.conn.listens(),
	}
	if !m.conn.elects() {
		m.events.send(found)
	}
	if err := m.findOtherJob(ctx); err != nil {
		return err
	}
	m.self = m.describe(rand.Text()[:16])
	m.session, err = rdzv.Join(ctx, m.conn.client, m.sessionConfig())
	if err == nil && m.conn.elects() {
		found.Leads = m.session.Leads() // who leads is not known before
		m.events.send(found)
	}
	if err == nil && m.conn.hosting() {
		m.conn.hosted.Serve() // not before: another agent of this host would join in place of this one
	}
	return err
}

// findOtherJob notes the job of the store that RDZV_JOIN names, if that is not this agent's. The
// agent takes part in it with this as its problem, so that all its agents report the same.
func (m *membership) findOtherJob(ctx context.Context) error {
	m.otherJob = ""
	if m.local.Config.Join == "" || m.conn.hosting() || m.conn.elects() {
		return nil
	}
	job, err := rdzv.OnlyJob(ctx, m.conn.client)
	if err != nil {
		return &rdzv.StoreLostError{Why: err}
	}
	if job != m.local.Job {
		m.otherJob = job
	}
	return nil
}

// joinProblem is that of findOtherJob, nil if there is none.
func (m *membership) joinProblem() error {
	if m.otherJob == "" {
		return nil
	}
	text := fmt.Sprintf("the command differs from that of the node that printed RDZV_JOIN: %s",
		shell.Line(m.local.Config.Program...))
	if m.local.Config.Job != "" {
		text = fmt.Sprintf("the node that printed RDZV_JOIN runs job %q, not %q", m.otherJob,
			m.local.Job)
	}
	return hint.With(errors.New(text), "give both nodes the same command, or the same --job NAME")
}

func (m *membership) sessionConfig() rdzv.Config {
	c := rdzv.Config{
		Job: cmp.Or(m.otherJob, m.local.Job), Self: m.self, JoinBy: m.joinBy,
		SettleTimeout: m.local.Config.settleTimeout(), ReadDetails: m.local.Config.RankTimes,
		ReadFailure: m.local.Placement.Launcher == envmap.None,
		Answer:      m.observed.answer, Renewed: m.lease.Renew,
	}
	if m.checking != nil {
		c.Answer = m.checking.answer
	}
	if m.conn.elects() {
		lead := m.conn.leaderConfig()
		c.Lead, c.Prefix = &lead, m.local.Config.Etcd.Prefix
		c.PeerTimeout, c.StoreTimeout = m.local.Config.PeerTimeout, m.local.Config.StoreTimeout
		c.Outlives = m.local.Config.outlives()
		c.Delayed = func(reason error, atMost time.Duration) {
			if m.local.FirstOfNode() {
				m.events.diagnose(Warning, delayed(m.local.Job, reason, atMost))
			}
		}
	}
	return c
}

// delayed says that this agent waits, because of agents or processes of the job that may be gone.
func delayed(job string, reason error, atMost time.Duration) error {
	if _, is := errors.AsType[*rdzv.EarlierRunError](reason); is {
		return fmt.Errorf("waiting at most %v: %w", atMost.Round(time.Second), reason)
	}
	return fmt.Errorf("waiting at most %v for agents of job %q, which may have been killed: %w",
		atMost, job, reason)
}

// describe returns the member that this agent publishes, with an ID. It also holds MASTER_PORT if
// this agent may run rank 0.
func (m *membership) describe(id string) rdzv.Member {
	p := m.local.Placement
	self := rdzv.Member{
		ID: id, Host: host.Name(), PID: os.Getpid(),
		Tasks:     m.local.all().records(),
		LocalSize: p.LocalSize, NodeRank: p.NodeRank, Node: host.NodeID(), Problems: m.problems(),
		Hosting: m.conn.hosting(), StoreGiven: m.local.Config.Store != "",
		Addr: m.conn.addr, Paths: m.conn.paths,
		Facts: m.local.facts(), Strict: m.local.Config.Strict,
	}
	if m.conn.meeting != nil && !m.conn.hosting() {
		self.StoreAddr = m.conn.meeting.Addr.Addr().String()
	}
	first := m.local.all().first()
	self.Rank0Problems = slices.Clone(first.rank0Problems)
	if first.layout().MayRunRank0() {
		err := m.port.Hold(m.local.Config.MasterPort)
		self.Rank0Problems = withProblem(self.Rank0Problems, err)
		self.HeadStart = first.HeadStart
		self.Exports, err = first.exports.Seal(m.conn.key(), m.conn.external())
		self.Rank0Problems = withProblem(self.Rank0Problems, err)
	}
	self.MasterPort = m.port.Number()
	if m.checking != nil {
		m.checking.take(&self)
	}
	return self
}

// problems prevent this agent from running its workers.
func (m *membership) problems() []rdzv.Problem {
	problems := withProblem(m.local.all().problems(), m.conn.noDir)
	problems = withProblem(problems, m.conn.checkNetworks())
	problems = withProblem(problems, m.joinProblem())
	if m.conn.hosting() {
		problems = withProblem(problems, m.conn.unable)
	}
	return problems
}

// settle reports to the job that all workers of this agent have ended. When all agents have
// settled, one of them writes its report: this agent's own event about the job's end comes before
// that.
func (m *membership) settle(workers []rdzv.Worker, details ...rdzv.Detail) {
	m.awaitReported()
	m.events.write(func(ctx context.Context) error {
		return m.session.Settle(ctx, workers, details...)
	})
}

// awaitReported waits until this agent has reported the job's end, if the job has ended.
func (m *membership) awaitReported() {
	if m.reported != nil && m.session.Context().Err() != nil {
		<-m.reported
	}
}

func (m *membership) attempt() *attempt {
	return &attempt{
		local: m.local, conn: m.conn, session: m.session, id: m.self.ID, host: m.self.Host,
		world: m.world, agreed: m.worldErr == nil || m.later,
	}
}

// rejoin makes this agent a member of the next attempt, in the same store, and waits for its world.
// Its workers have ended.
func (m *membership) rejoin(in *interrupts) error {
	m.joinBy = m.local.Config.joinBy()
	old := m.port
	if m.local.Config.MasterPort == 0 {
		m.port = torchport.Port{}
	}
	m.self = m.describe(m.self.ID)
	if m.port != old {
		old.Release() // not before: the new port is another one
	}
	session, err := m.session.Next(context.Background(), m.self, m.joinBy)
	if err != nil {
		return err
	}
	m.session, m.later = session, true
	in.joined(session)
	m.observed.joined(m.self.ID, session)
	m.awaitWorld()
	return nil
}
