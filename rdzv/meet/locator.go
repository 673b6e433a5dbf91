package meet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/meet/internal/pmi"
)

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
		rejections: &rejections{own: c.Host, notify: c.Notify},
	}
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

// listen opens the gate. Clients that connect wait until serve admits them.
func (l *locator) listen(ctx context.Context, p *plan) (*Meeting, error) {
	listeners, err := gate.Listen(ctx, p.addrs, masterLast(p.ports, l.config.MasterPort))
	switch {
	case err != nil && p.named: // see explainPortInUse
		return nil, err
	case err != nil:
		return nil, inUseBy(err, l.config.Proc, p.ports)
	}
	order := orderOf(l.config.NodeRank, l.config.Host)
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
	return &Meeting{
		gate: g, id: g.ID(), dialer: d, tasks: newTasks(),
		Hosting: true, Key: p.key, Addr: addrs[0], Addrs: addrs,
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
	if !l.config.hasRank() && !l.config.Hosts {
		m.tasks.run(func(ctx context.Context) { reportNoPeerYet(ctx, l.config, m, l.rejections, nil) })
	}
	if p.announce || p.storeHost != "" {
		m.tasks.run(func(ctx context.Context) { p.multicast.announce(ctx, m) })
	}
	if p.storeHost != "" {
		m.tasks.run(func(ctx context.Context) { l.reportOtherHosts(ctx, p) })
	}
	return nil
}

// reportOtherHosts reports other agents that host a store, until ctx ends, to an agent that hosts
// one because Config.Store names its host: those of the same job, and those with another token.
func (l *locator) reportOtherHosts(ctx context.Context, p *plan) {
	p.multicast.receive(ctx, differentJobAfter, func(packet beacon.Packet) {
		b, err := p.multicast.parse(packet, l.reporter(p))
		if err == nil && b.Hosting && b.Host != l.config.Host {
			l.rejections.add(gate.Rejection{Host: b.Host, Addr: packet.From, Reason: errOtherStore})
		}
	})
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

// meetingAt is the meeting at a store that was found.
func (p *plan) meetingAt(d *gate.Dialer, found *answer) *Meeting {
	if found.Shared {
		d = d.Shared
	}
	return &Meeting{
		id: found.ID, dialer: d, first: found.conn, tasks: newTasks(),
		Key: p.key, Addr: found.addr, Addrs: found.Addrs, Shared: found.Shared,
	}
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
