package meet

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/secret"
)

// A session is one agent's looking for the store, over as many stores as it takes.
type session struct {
	Config
	host      HostFunc
	mu        sync.Mutex
	exclude   map[gate.Instance]bool
	strangers []Stranger
	closers   []func()
	usedPMI   bool // Hydra has let this task meet the others, which it does once
}

// Meet returns when this agent either hosts the store (host has returned without error) or holds a verified connection to it.
// Until then it tries, and ctx ends that: the error is then a *NotFoundError that says what every address answered.
func Meet(ctx context.Context, c Config, host HostFunc) (*Meeting, error) {
	c.fill()
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &session{Config: c, host: host, exclude: map[gate.Instance]bool{}}
	return s.meet(ctx)
}

// end undoes what the session has done, the last first. Only the first call does anything.
func (s *session) end() {
	s.mu.Lock()
	closers := s.closers
	s.closers = nil
	s.mu.Unlock()
	for _, f := range slices.Backward(closers) {
		f()
	}
}

// onEnd has f called when the agent leaves, or cannot meet the others.
func (s *session) onEnd(f func()) {
	s.mu.Lock()
	s.closers = append(s.closers, f)
	s.mu.Unlock()
}

// meet runs the row that holds for this agent. Whatever way it fails, a panic included, the launcher is told.
func (s *session) meet(ctx context.Context) (m *Meeting, err error) {
	defer func() {
		if m == nil {
			s.end()
		}
	}()
	return s.run(ctx)
}

func (s *session) run(ctx context.Context) (*Meeting, error) {
	p, err := s.plan(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case p.elect != nil:
		return p.elect(ctx, s, p)
	case p.hosts:
		return s.hostAt(ctx, p)
	}
	return s.look(ctx, p)
}

// hostAt binds the listeners and starts the store on them.
func (s *session) hostAt(ctx context.Context, p *plan) (*Meeting, error) {
	m, err := s.bind(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := m.serve(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// bind listens, so that those who look for this agent find it, and be it only to wait at its gate.
func (s *session) bind(ctx context.Context, p *plan) (*Meeting, error) {
	listeners, err := gate.Listen(ctx, p.addrs, p.ports)
	if err != nil {
		return nil, err
	}
	g, err := gate.New(listeners, p.key, p.public, func(who Stranger) { s.strange(who, p) })
	if err != nil {
		return nil, err
	}
	addrs := g.Addrs()
	better := make(chan struct{})
	return &Meeting{
		session: s, plan: p, gate: g, id: g.ID(), Hosting: true, Key: p.key,
		Addr: addrs[0], Addrs: addrs, BetterHost: better, betterHost: better,
	}, nil
}

// look finds the store that another agent hosts.
func (s *session) look(ctx context.Context, p *plan) (*Meeting, error) {
	d, err := gate.NewDialer(p.key, p.public, s.Host)
	if err != nil {
		return nil, err
	}
	sr := &search{dialer: d, sources: p.sources, exclude: s.excluded(), told: func(who Stranger) { s.strange(who, p) }}
	f, err := sr.run(ctx)
	if err != nil {
		var none *NotFoundError
		if errors.As(err, &none) {
			none.Hint, none.Strangers = p.hint, s.known()
			if p.foreign != "" && slices.ContainsFunc(none.Tried, func(a Answer) bool { return errors.Is(a.Err, gate.ErrNotStore) }) {
				none.Hint = p.foreign
			}
		}
		return nil, err
	}
	return &Meeting{session: s, plan: p, dialer: d, id: f.ID, first: f.conn, Key: p.key, Addr: f.addr, Addrs: f.Addrs}, nil
}

// strange tells the user, once each, of an agent that may be the user's own but has another key.
func (s *session) strange(who Stranger, p *plan) {
	if errors.Is(who.Why, ErrOtherJob) && !p.named {
		return // neighbours on a port that two jobs share in their sequences
	}
	s.tell(who)
}

func (s *session) tell(who Stranger) {
	if s.new(who) {
		s.Say(who.String())
	}
}

// maxStrangers bounds what is said and remembered of strangers: they may be many, and mean no good.
const maxStrangers = 16

func (s *session) new(who Stranger) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(w Stranger) bool { return w.Addr == who.Addr || w.Host != "" && w.Host == who.Host }
	if len(s.strangers) == maxStrangers || slices.ContainsFunc(s.strangers, same) {
		return false
	}
	s.strangers = append(s.strangers, who)
	return true
}

func (s *session) known() []Stranger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.strangers)
}

func (s *session) excluded() map[gate.Instance]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := map[gate.Instance]bool{}
	for id := range s.exclude {
		copied[id] = true
	}
	return copied
}

// Guard makes one listener of several, which lets in only agents of the job with that key. The listener that a HostFunc is
// given is guarded already.
func Guard(listeners []net.Listener, key secret.Key) (net.Listener, error) {
	g, err := gate.New(listeners, &key, nil, nil)
	if err != nil {
		return nil, err
	}
	g.Admit()
	return g, nil
}
