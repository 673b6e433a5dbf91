package meet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// A plan is what one row of the table in the package comment comes to, for this agent.
type plan struct {
	key      *Key     // nil: --insecure
	public   []byte   // the job's public name
	contact  Key      // under Hydra: what rank 0 has made, with --insecure too
	hosts    bool     // this agent hosts, and no other does
	elect    election // who hosts is decided among the agents, on the way; nil otherwise
	beacon   []byte   // secret of the job's beacons
	addrs    []netip.Addr
	ports    []int
	sources  []source // where to look, for those that do not host
	hint     string   // what helps when nothing is found
	announce bool     // the host calls out with beacons
	named    bool     // the user named this very address: another job there is worth telling
}

// An election decides on the way whether this agent hosts.
type election func(ctx context.Context, s *session, p *plan) (*Meeting, error)

// A session is one agent's looking for the store, over as many stores as it takes.
type session struct {
	Config
	host      HostFunc
	mu        sync.Mutex
	exclude   map[instance]bool
	strangers []Stranger
	closers   []func()
}

// Meet returns when this agent either hosts the store (host has returned without error) or holds a verified connection to it.
// Until then it tries, and ctx ends that: the error is then a *NotFoundError that says what every address answered.
func Meet(ctx context.Context, c Config, host HostFunc) (*Meeting, error) {
	c.fill()
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &session{Config: c, host: host, exclude: map[instance]bool{}}
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

// plan picks the row of the table.
func (s *session) plan(ctx context.Context) (*plan, error) {
	switch {
	case s.Store != "":
		return s.namedStore(ctx)
	case s.Join != "":
		return s.joinLine()
	case s.openMPI4():
		return s.orte()
	case s.openMPI5():
		return s.prte()
	case s.hydra():
		return s.pmi()
	case s.slurm():
		return s.slurmStep()
	case s.byHand():
		return s.hand()
	}
	return s.ranked()
}

// planFor is the plan that most rows share: rank 0 hosts, the key names the ports.
func (s *session) planFor(key *Key) (*plan, error) {
	p := &plan{key: key, public: publicName(s.Job), hosts: s.Rank == 0}
	if key != nil {
		p.public = key[:publicLen]
		p.beacon = expand(key[:], "beacon", len(Key{}))
	}
	p.ports = portsOf(p.public, s.PortLo, s.PortHi, sequenceLen)
	var err error
	p.addrs, err = s.listenAddrs()
	return p, err
}

// planByToken is planFor with the key that the user's token makes. Beacons are signed with the token itself, so that agents of the
// user's other jobs can be told from strangers.
func (s *session) planByToken() (*plan, error) {
	if s.Insecure {
		return s.planFor(nil)
	}
	token, err := s.Token()
	if err != nil {
		return nil, err
	}
	if len(token) < MinSecret {
		return nil, errShortToken
	}
	key := DeriveKey(token, s.Job)
	p, err := s.planFor(&key)
	if err == nil {
		p.beacon = expand(token, "beacon", len(Key{}))
	}
	return p, err
}

// ranked plans for launchers that give a rank and say nothing of addresses: this host, MASTER_ADDR if there is one, and beacons.
func (s *session) ranked() (*plan, error) {
	p, err := s.planByToken()
	if err != nil {
		return nil, err
	}
	p.sources = []source{s.nearby(p.ports)}
	if master := s.env("MASTER_ADDR"); master != "" {
		p.sources = append(p.sources, s.names([]string{master}, 0, p.ports))
	}
	s.beside(p)
	p.hint = "nothing here tells rank 0's host: name it with RDZV_STORE=HOST for all ranks"
	return p, nil
}

// beside adds beacons to what else a row has, where the agents are on several hosts.
func (s *session) beside(p *plan) {
	if s.oneNode() {
		return
	}
	p.announce = true
	p.sources = append(p.sources, s.beacons(p))
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
	moved := make(chan struct{})
	return &Meeting{session: s, plan: p, gate: g, id: g.id, Hosting: true, Key: p.key, Addr: addrs[0], Addrs: addrs, Moved: moved, moved: moved}, nil
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
			none.Hint, none.Strangers = p.hint, s.known()
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

func (s *session) excluded() map[instance]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := map[instance]bool{}
	for id := range s.exclude {
		copied[id] = true
	}
	return copied
}
