package meet

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	"rdzv/rdzv/secret"
)

// A plan is what one row of the table in the package comment comes to, for this agent.
type plan struct {
	key      *secret.Key // nil: --insecure
	public   []byte      // the job's public name
	contact  secret.Key  // under Hydra: what rank 0 has made, with --insecure too
	hosts    bool        // this agent hosts, and no other does
	elect    election    // who hosts is decided among the agents, on the way; nil otherwise
	beacon   []byte      // secret of the job's beacons
	addrs    []netip.Addr
	ports    []int
	sources  []source // where to look, for those that do not host
	hint     string   // what helps when nothing is found
	foreign  string   // what helps when something else is found there; "" is the hint
	announce bool     // the host calls out with beacons
	named    bool     // the user named this very address: another job there is worth telling
}

// An election decides on the way whether this agent hosts.
type election func(ctx context.Context, s *session, p *plan) (*Meeting, error)

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
func (s *session) planFor(key *secret.Key) (*plan, error) {
	p := &plan{key: key, public: secret.PublicName(s.Job), hosts: s.Rank == 0}
	if key != nil {
		p.public = key[:secret.PublicLen]
		p.beacon = secret.Expand(key[:], "beacon", len(secret.Key{}))
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
	if len(token) < secret.MinSecret {
		return nil, secret.ErrShortToken
	}
	key := secret.DeriveKey(token, s.Job)
	p, err := s.planFor(&key)
	if err == nil {
		p.beacon = secret.Expand(token, "beacon", len(secret.Key{}))
	}
	return p, err
}

// ranked plans for launchers that give a rank and at most the name of rank 0's host: this host, that
// name or MASTER_ADDR, and beacons. Rank 0 hosts whatever the name means on its own host: there it may
// be localhost, or an address that is translated on the way.
func (s *session) ranked() (*plan, error) {
	p, err := s.planByToken()
	if err != nil {
		return nil, err
	}
	p.sources = []source{s.nearby(p.ports)}
	p.hint = "nothing here tells rank 0's host: name it with RDZV_STORE=HOST for all ranks"
	if master := cmp.Or(s.Master, s.env("MASTER_ADDR")); master != "" {
		p.sources = append(p.sources, s.names([]string{master}, 0, p.ports))
		p.hint = fmt.Sprintf("rank 0's agent hosts the store, and its host is %q: has it started? "+
			"RDZV_STORE=HOST for all ranks names another", master)
	}
	s.beside(p)
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
