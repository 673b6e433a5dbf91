package meet

import (
	"encoding/hex"
	"net/netip"

	"rdzv/rdzv/secret"
)

// A plan is what one row of the table in the package comment comes to, for this agent.
type plan struct {
	key       *secret.Key // nil: --insecure
	public    []byte      // the job's public name
	hosts     bool        // this agent hosts, and no other does, unless there is an election
	addrs     []netip.Addr
	ports     []int
	sources   []source // where to look, for those that do not host
	hint      string   // what helps when nothing is found
	foreign   string   // what helps when something else is found there; "" is the hint
	announce  bool     // the host calls out with beacons, and the others listen to them
	multicast multicast
	named     bool // the user named this very address: another job there is worth telling
	alone     bool // a host of whom nobody knows tells how the others can find it
	store     bool // and that --store would help
}

// planFor is the plan that most rows share: rank 0 hosts, the key names the ports.
func planFor(c *Config, key *secret.Key) (*plan, error) {
	p := &plan{key: key, public: secret.PublicName(c.Job), hosts: c.Rank == 0, alone: c.byHand(), store: c.Store == ""}
	var signer []byte
	if key != nil {
		p.public = key[:secret.PublicLen]
		signer = secret.Expand(key[:], "beacon", len(secret.Key{}))
	}
	p.ports = portsOf(p.public, c.PortLo, c.PortHi, sequenceLen)
	p.multicast = multicast{open: c.openMulticast, public: hex.EncodeToString(p.public), key: signer, host: c.Host}
	var err error
	p.addrs, err = c.listenAddrs()
	return p, err
}

// planByToken is planFor with the key that the user's token makes. Beacons are signed with the
// token itself, so that agents of the user's other jobs can be told from strangers.
func planByToken(c *Config) (*plan, error) {
	if c.Insecure {
		return planFor(c, nil)
	}
	token, err := c.Token()
	if err != nil {
		return nil, err
	}
	if len(token) < secret.MinSecret {
		return nil, secret.ErrShortToken
	}
	key := secret.DeriveKey(token, c.Job)
	p, err := planFor(c, &key)
	if err == nil {
		p.multicast.key = secret.Expand(token, "beacon", len(secret.Key{}))
	}
	return p, err
}
