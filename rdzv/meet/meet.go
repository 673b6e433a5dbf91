package meet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/meet/internal/pmi"
)

// Meet returns when this agent hosts the store (host has returned without an error) or has an
// authenticated connection to it. If ctx ends before that, the error is a *NotFoundError with the
// answers of all addresses that were tried; if the host of the store has a different token, it is a
// *RefusedError after 30 s.
func Meet(ctx context.Context, c Config, host HostFunc) (*Meeting, error) {
	c.setDefaults()
	if c.PortLo < 1 || c.PortHi > 65535 || c.PortLo > c.PortHi {
		return nil, fmt.Errorf("cannot use ports %d-%d: not a range within 1-65535", c.PortLo, c.PortHi)
	}
	if err := CheckNet(c.Net); err != nil {
		return nil, err
	}
	return newLocator(&c, host).locate(ctx)
}

// A locator finds the store or hosts it, according to a plan.
type locator struct {
	config     *Config
	host       HostFunc
	past       []gate.Instance // stores whose job has ended
	wasShared  bool            // the last one was a shared store, to which this agent returns
	begin      time.Time       // of this agent's attempt to meet the others
	rejections *rejections
	cleanup    *cleanup
	others     []*pmi.Client // under Hydra, of Config.OtherPMI
}

func newLocator(c *Config, host HostFunc) *locator {
	return &locator{
		config: c, host: host, cleanup: &cleanup{},
		rejections: &rejections{own: c.Host, others: c.Others, notify: c.Notify},
	}
}

// locate makes the plan for this agent and carries it out. It runs the cleanup if that fails, even
// with a panic, because Hydra kills the other ranks if one exits without finalize.
func (l *locator) locate(ctx context.Context) (m *Meeting, err error) {
	defer func() {
		if m == nil {
			l.cleanup.run()
		}
	}()
	l.begin = time.Now()
	p, elect, err := makePlan(ctx, l.config, l.cleanup.add)
	if err != nil {
		return nil, err
	}
	if l.wasShared {
		p.hint, p.refusedHint = "the shared store was stopped: start rdzv store there again", ""
	}
	return l.meet(ctx, p, elect)
}

func (l *locator) meet(ctx context.Context, p *plan, elect election) (*Meeting, error) {
	m, err := elect(ctx, l, p)
	if err != nil {
		return nil, err
	}
	m.config, m.cleanup = l.config, l.cleanup
	m.again = func(ctx context.Context) (*Meeting, error) {
		next := *l
		if next.wasShared = m.Shared; !m.Shared {
			next.past = append(slices.Clip(l.past), m.id)
		}
		return next.locate(ctx)
	}
	return m, nil
}

// An election determines whether this agent hosts the store, and hosts or finds it.
type election func(ctx context.Context, l *locator, p *plan) (*Meeting, error)

// byRank is the election if the plan determines which agent hosts.
func byRank(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
	if p.hosting {
		return l.hostStore(ctx, p)
	}
	return l.findStore(ctx, p)
}

// hostStore listens and starts the store.
func (l *locator) hostStore(ctx context.Context, p *plan) (*Meeting, error) {
	m, err := l.listen(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := l.serve(ctx, m, p); err != nil {
		return nil, err
	}
	return m, nil
}

// listen opens the gate. Clients that connect wait until serve admits them or the gate redirects
// them.
func (l *locator) listen(ctx context.Context, p *plan) (*Meeting, error) {
	listeners, err := gate.Listen(ctx, p.addrs, p.ports)
	switch {
	case err != nil && p.named: // see explainPortInUse
		return nil, err
	case err != nil:
		return nil, inUseBy(err, l.config.Proc, p.ports)
	}
	order := gate.OrderOf(l.config.NodeRank, l.config.Host)
	g, err := gate.New(listeners, p.key, p.public, order, l.reporter(p))
	if err != nil {
		return nil, err
	}
	d, err := l.dialer(p, "")
	if err != nil {
		g.Close()
		return nil, err
	}
	addrs := g.Addrs()
	better := make(chan struct{})
	return &Meeting{
		gate: g, id: g.ID(), dialer: d, tasks: newTasks(),
		Hosting: true, Key: p.key, Addr: addrs[0], Addrs: addrs,
		BetterHost: better, betterHost: better,
	}, nil
}

// serve starts the store and admits clients. It releases m if that fails.
func (l *locator) serve(ctx context.Context, m *Meeting, p *plan) error {
	started := false
	defer func() {
		if !started {
			m.release()
		}
	}()
	if err := l.host(ctx, m.gate); err != nil {
		return err
	}
	started = true
	m.gate.Admit()
	if !l.config.hasRank() {
		m.tasks.run(func(ctx context.Context) { reportAlone(ctx, l.config, m, l.rejections, nil) })
	}
	if p.announce || p.storeHost != "" {
		m.tasks.run(func(ctx context.Context) { p.multicast.announce(ctx, m) })
	}
	if p.storeHost != "" {
		m.tasks.run(func(ctx context.Context) { l.reportOtherHosts(ctx, p) })
	}
	return nil
}

// findStore finds the store that another agent hosts.
func (l *locator) findStore(ctx context.Context, p *plan) (*Meeting, error) {
	d, err := l.dialer(p, "")
	if err != nil {
		return nil, err
	}
	return l.find(ctx, l.newSearch(p, d))
}

func (l *locator) newSearch(p *plan, d *gate.Dialer) *search {
	s := &search{
		dialer: d, sources: p.sources, past: l.past, report: l.reporter(p),
		notify: l.config.Notify, nextReport: l.config.NextReport, plan: p, begin: l.begin,
		rejections: l.rejections, refusedTimeout: l.config.refusedTimeout,
	}
	if p.announce {
		s.sources = append(slices.Clip(s.sources), p.multicast.hosts(s.report))
	}
	if p.storeHost != "" {
		found := func(ctx context.Context, b beacon.Beacon, r gate.Rejection) {
			if l.rejections.add(r) && errors.Is(r.Reason, gate.ErrDifferentJob) {
				l.call(ctx, p, b.Addrs)
			}
		}
		s.sources = append(slices.Clip(s.sources), p.multicast.otherHosts(p.storeHost, found))
	}
	return s
}

func (l *locator) find(ctx context.Context, s *search) (*Meeting, error) {
	f, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	return s.plan.meetingAt(s.dialer, f), nil
}

// call tells the agent that hosts the store of another job, at the host that --store names, that
// this agent is not of its job: it may be waiting for this one, as this one does for it.
func (l *locator) call(ctx context.Context, p *plan, addrs []netip.AddrPort) {
	d, err := l.dialer(p, gate.Caller)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, addr := range addrs {
		conn, _, err := d.Dial(ctx, addr)
		if err == nil {
			conn.Close() // it is of this job by now
		}
		if err == nil || errors.Is(err, gate.ErrDifferentJob) {
			return
		}
	}
}

// reporter returns the function that reports rejections. A different job on a port that two jobs
// have in their port sequences by accident is not reported.
func (l *locator) reporter(p *plan) func(gate.Rejection) {
	return func(r gate.Rejection) {
		if !errors.Is(r.Reason, gate.ErrDifferentJob) || p.named || r.Called {
			l.rejections.add(r)
		}
	}
}

func (l *locator) dialer(p *plan, id string) (*gate.Dialer, error) {
	d, err := gate.NewDialer(p.key, p.public, l.config.Host, id)
	if err == nil {
		d.Shared = p.shared
	}
	return d, err
}
