package meet

import (
	"context"
	"errors"
	"slices"

	"rdzv/rdzv/meet/internal/gate"
)

// A joiner can do what a row of the table may call for: host the store, or look for one that
// another agent hosts.
type joiner struct {
	config    *Config
	start     HostFunc
	past      []gate.Instance // stores whose job is over
	strangers *strangers
	ending    *ending
}

func newJoiner(c *Config, host HostFunc) *joiner {
	return &joiner{config: c, start: host, strangers: &strangers{notify: c.Notify}, ending: &ending{}}
}

// find runs the row that holds for this agent. Whatever way it fails, a panic included, the
// launcher is told.
func (j *joiner) find(ctx context.Context) (m *Meeting, err error) {
	defer func() {
		if m == nil {
			j.ending.end()
		}
	}()
	p, elect, err := choose(ctx, j.config, j.ending.onEnd)
	if err != nil {
		return nil, err
	}
	return j.meet(ctx, p, elect)
}

func (j *joiner) meet(ctx context.Context, p *plan, elect election) (*Meeting, error) {
	m, err := elect(ctx, j, p)
	if err != nil {
		return nil, err
	}
	m.config, m.end = j.config, j.ending.end
	m.again = func(ctx context.Context) (*Meeting, error) {
		next := *j
		next.past = append(slices.Clip(j.past), m.id)
		return next.find(ctx)
	}
	return m, nil
}

// An election decides on the way whether this agent hosts.
type election func(ctx context.Context, j *joiner, p *plan) (*Meeting, error)

// byRank is the election where the plan says who hosts.
func byRank(ctx context.Context, j *joiner, p *plan) (*Meeting, error) {
	if p.hosts {
		return j.hostAt(ctx, p)
	}
	return j.look(ctx, p)
}

// hostAt binds the listeners and starts the store on them.
func (j *joiner) hostAt(ctx context.Context, p *plan) (*Meeting, error) {
	m, err := j.bind(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := j.serve(ctx, m, p); err != nil {
		return nil, err
	}
	return m, nil
}

// bind listens, so that those who look for this agent find it, and be it only to wait at its gate.
func (j *joiner) bind(ctx context.Context, p *plan) (*Meeting, error) {
	listeners, err := gate.Listen(ctx, p.addrs, p.ports)
	if err != nil {
		return nil, err
	}
	g, err := gate.New(listeners, p.key, p.public, j.told(p))
	if err != nil {
		return nil, err
	}
	d, err := j.dialer(p)
	if err != nil {
		g.Close()
		return nil, err
	}
	addrs := g.Addrs()
	better := make(chan struct{})
	return &Meeting{
		gate: g, id: g.ID(), dialer: d,
		Hosting: true, Key: p.key, Addr: addrs[0], Addrs: addrs, BetterHost: better, betterHost: better,
	}, nil
}

// serve starts the store and lets in who waits at the gate. If it cannot, all is released.
func (j *joiner) serve(ctx context.Context, m *Meeting, p *plan) error {
	started := false
	defer func() {
		if !started {
			m.release()
		}
	}()
	if err := j.start(ctx, m.gate); err != nil {
		return err
	}
	started = true
	m.gate.Admit()
	if p.alone {
		m.tasks.run(func(ctx context.Context) { alone(ctx, m, p, j.config.Notify) })
	}
	if p.announce {
		m.tasks.run(func(ctx context.Context) { p.multicast.announce(ctx, m.Addrs) })
	}
	return nil
}

// look finds the store that another agent hosts.
func (j *joiner) look(ctx context.Context, p *plan) (*Meeting, error) {
	d, err := j.dialer(p)
	if err != nil {
		return nil, err
	}
	s := &search{dialer: d, sources: p.sources, past: j.past, told: j.told(p)}
	if p.announce {
		s.sources = append(slices.Clip(s.sources), p.multicast.stores(s.told))
	}
	f, err := s.run(ctx)
	if err != nil {
		var none *NotFoundError
		if errors.As(err, &none) {
			none.Hint, none.Strangers = p.hint, j.strangers.known()
			if p.foreign != "" && slices.ContainsFunc(none.Tried, func(a Answer) bool { return errors.Is(a.Err, gate.ErrNotStore) }) {
				none.Hint = p.foreign
			}
		}
		return nil, err
	}
	return &Meeting{
		id: f.ID, dialer: d, first: f.conn, Key: p.key, Addr: f.addr, Addrs: f.Addrs,
	}, nil
}

// told gives who hears of strangers: neighbours on a port that two jobs share in their sequences
// are none of the user's business.
func (j *joiner) told(p *plan) func(gate.Rejection) {
	return func(who gate.Rejection) {
		if !errors.Is(who.Reason, gate.ErrDifferentJob) || p.named {
			j.strangers.tell(who)
		}
	}
}

func (j *joiner) dialer(p *plan) (*gate.Dialer, error) {
	return gate.NewDialer(p.key, p.public, j.config.Host)
}
