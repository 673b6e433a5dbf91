package meet

import (
	"context"
	"errors"
	"slices"
	"sync"

	"rdzv/rdzv/meet/internal/gate"
)

// A joiner can do what a row of the table may call for: host the store, or look for one that
// another agent hosts.
type joiner struct {
	start     HostFunc
	host      string          // this host's name
	past      []gate.Instance // stores whose job is over
	strangers *strangers
	notify    func(Notice)
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
	addrs := g.Addrs()
	better := make(chan struct{})
	return &Meeting{
		gate: g, id: g.ID(), dialer: sync.OnceValues(func() (*gate.Dialer, error) { return j.dialer(p) }),
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
		m.tasks.run(func(ctx context.Context) { alone(ctx, m, p, j.notify) })
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
		id: f.ID, dialer: func() (*gate.Dialer, error) { return d, nil }, first: f.conn,
		Key: p.key, Addr: f.addr, Addrs: f.Addrs,
	}, nil
}

// told gives who hears of strangers: neighbours on a port that two jobs share in their sequences
// are none of the user's business.
func (j *joiner) told(p *plan) func(gate.Stranger) {
	return func(who gate.Stranger) {
		if !errors.Is(who.Why, gate.ErrOtherJob) || p.named {
			j.strangers.tell(who)
		}
	}
}

func (j *joiner) dialer(p *plan) (*gate.Dialer, error) {
	return gate.NewDialer(p.key, p.public, j.host)
}
