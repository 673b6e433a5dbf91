package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// A plan is what one row of the table in the package comment comes to, for this agent.
type plan struct {
	key     *Key     // nil: --insecure
	public  []byte   // the job's public name
	hosts   bool     // this agent hosts, and no other does
	elect   election // who hosts is decided among the agents, on the way; nil otherwise
	addrs   []netip.Addr
	ports   []int
	sources []source // where to look, for those that do not host
	hint    string   // what helps when nothing is found
	named   bool     // the user named this very address: another job there is worth telling
}

// An election decides on the way whether this agent hosts.
type election func(ctx context.Context, s *session, p *plan) (*Meeting, error)

// A session is one agent's looking for the store, over as many stores as it takes.
type session struct {
	Config
	host    HostFunc
	mu      sync.Mutex
	exclude map[instance]bool
	said    map[string]bool
}

// Meet returns when this agent either hosts the store (host has returned without error) or holds a verified connection to it.
// Until then it tries, and ctx ends that: the error is then a *NotFoundError that says what every address answered.
func Meet(ctx context.Context, c Config, host HostFunc) (*Meeting, error) {
	c.fill()
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &session{Config: c, host: host, exclude: map[instance]bool{}, said: map[string]bool{}}
	return s.meet(ctx)
}

func (s *session) meet(ctx context.Context) (*Meeting, error) {
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

// plan picks the row of the table.
func (s *session) plan(ctx context.Context) (*plan, error) {
	switch {
	case s.Store != "":
		return s.namedStore(ctx)
	case s.openMPI4():
		return s.orte()
	}
	return nil, fmt.Errorf("cannot find the job's store: nothing here says where it is")
}

// planFor is the plan that most rows share: rank 0 hosts, the key names the ports.
func (s *session) planFor(key *Key) *plan {
	p := &plan{key: key, public: publicName(s.Job), hosts: s.Rank == 0}
	if key != nil {
		p.public = key[:publicLen]
	}
	p.ports = portsOf(p.public, s.PortLo, s.PortHi, sequenceLen)
	return p
}

// hostAt binds the listeners and starts the store on them.
func (s *session) hostAt(ctx context.Context, p *plan) (*Meeting, error) {
	m, err := s.bind(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := m.serve(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// bind listens, so that those who look for this agent find it, and be it only to wait at its gate.
func (s *session) bind(ctx context.Context, p *plan) (*Meeting, error) {
	listeners, err := listen(ctx, p.addrs, p.ports)
	if err != nil {
		return nil, err
	}
	g, err := s.guard(listeners, p)
	if err != nil {
		closeAll(listeners)
		return nil, err
	}
	addrs := addrsOf(listeners)
	return &Meeting{session: s, plan: p, gate: g, id: g.id, Hosting: true, Key: p.key, Addr: addrs[0], Addrs: addrs}, nil
}

func (s *session) guard(listeners []net.Listener, p *plan) (*gate, error) {
	told := func(who Stranger) { s.strange(who, p) }
	if p.key == nil {
		return newPlainGate(listeners, p.public, told), nil
	}
	cfg, err := p.key.ServerTLS()
	if err != nil {
		return nil, err
	}
	return newGate(listeners, cfg, told), nil
}

// look finds the store that another agent hosts.
func (s *session) look(ctx context.Context, p *plan) (*Meeting, error) {
	d, err := newDialer(p.key, p.public, s.Host)
	if err != nil {
		return nil, err
	}
	sr := &search{dialer: d, sources: p.sources, exclude: s.excluded(), told: func(who Stranger) { s.strange(who, p) }}
	f, err := sr.run(ctx)
	if err != nil {
		var none *NotFoundError
		if errors.As(err, &none) {
			none.Hint = p.hint
		}
		return nil, err
	}
	return &Meeting{session: s, plan: p, dialer: d, id: f.id, first: f.conn, Key: p.key, Addr: f.addr, Addrs: []netip.AddrPort{f.addr}}, nil
}

// strange tells the user, once each, of an agent that may be the user's own but has another key.
func (s *session) strange(who Stranger, p *plan) {
	if errors.Is(who.Why, ErrOtherJob) && !p.named {
		return // neighbours on a port that two jobs share in their sequences
	}
	s.mu.Lock()
	line := who.String()
	again := s.said[line]
	s.said[line] = true
	s.mu.Unlock()
	if !again {
		s.Say(line)
	}
}

func (s *session) excluded() map[instance]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := map[instance]bool{}
	for id := range s.exclude {
		copied[id] = true
	}
	return copied
}
