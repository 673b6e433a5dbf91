package meet

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"slices"
	"syscall"

	"rdzv/rdzv/masterport"
	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/secret"
)

// A plan is what one row of the table means for this agent.
type plan struct {
	key       *secret.Key  // nil: --insecure
	public    []byte       // public name of the job
	hosting   bool         // this agent hosts, if there is no election
	addrs     []netip.Addr // where this agent listens if it hosts
	ports     []int        // for the store, in the order in which they are tried
	searched  []int        // the same, and those of a shared store; nil unless --store is given
	shared    *gate.Dialer // for a shared store, nil if there can be none
	sources   []source     // where the store may be, for an agent that does not host
	announce  bool         // the host sends beacons, and the other agents receive them
	multicast multicast

	// storeHost is the host that --store names. An agent there that hosts sends beacons, only for
	// messages. It is "" without such a host, or if other hosts cannot reach it.
	storeHost string

	peers *peers // nil without an election by beacons
	named bool   // the user has specified this address, so a different job there is reported

	hint             string // what to do if the store is not found
	unresolvedHint   string // the same if the name of its host does not resolve; "" if that is unknown
	otherServiceHint string // the same if another service uses the address; "" if hint applies
	etcdHint         string // the same if that may be an etcd cluster
	refusedHint      string // the same if nothing listens at any of the addresses; "" if hint applies
}

// etcdPort is the port on which etcd listens by default.
const etcdPort = 2379

// maybeEtcd tells whether an etcd may be at the address in --store, which gave that answer. etcd
// closes a connection that begins with a TLS handshake, if it does not use TLS.
func (p *plan) maybeEtcd(answer error) bool {
	return p.etcdHint != "" && (p.ports[0] == etcdPort || errors.Is(answer, io.EOF) ||
		answer == gate.ErrNotStore || answer == gate.ServiceError("an HTTP server"))
}

// hintFor returns what to do about a search that has not found the store.
func (p *plan) hintFor(s Searching) string {
	otherService := func(a Answer) bool { return errors.Is(a.Err, gate.ErrNotStore) }
	switch {
	case len(s.Rejections) > 0:
		return "" // each was reported with what to do about it
	case p.refusedHint != "" && len(s.Unresolved) == 0 && !slices.ContainsFunc(s.Tried, notRefused):
		return p.refusedHint
	case slices.ContainsFunc(s.Tried, func(a Answer) bool { return p.maybeEtcd(a.Err) }):
		return p.etcdHint
	case p.otherServiceHint != "" && slices.ContainsFunc(s.Tried, otherService):
		return p.otherServiceHint
	case len(s.Unanswered) > 0 && len(s.Tried) == 0:
		return "check the DNS servers in /etc/resolv.conf; " +
			"the name is resolved again until --join-timeout"
	case len(s.Unresolved) > 0 && p.unresolvedHint != "":
		return p.unresolvedHint + "; the name is resolved again until --join-timeout"
	case len(s.Unresolved) > 0 && len(s.Tried) == 0:
		return "check the name; it is resolved again until --join-timeout"
	}
	return p.hint
}

func notRefused(a Answer) bool { return !errors.Is(a.Err, syscall.ECONNREFUSED) }

// planFor makes the plan that most rows have in common: rank 0 hosts, and the port sequence depends
// on the key.
func planFor(c *Config, key *secret.Key) (*plan, error) {
	p := &plan{key: key, public: secret.PublicName(c.Job), hosting: c.Rank == 0}
	var signer []byte
	if key != nil {
		p.public = key[:secret.PublicLen]
		signer = secret.Expand(key[:], "beacon", len(secret.Key{}))
	}
	p.ports = portsOf(p.public, c.PortLo, c.PortHi)
	p.multicast = multicast{config: c, public: hex.EncodeToString(p.public), key: signer}
	var err error
	p.addrs, err = c.listenAddrs()
	return p, err
}

// planByToken is planFor with a key derived from the user's token. The key of beacons is derived
// from the token only, so that agents of the user's other jobs can be recognised.
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
	if err == nil && c.Store != "" {
		p.shared, err = sharedDialer(c, token)
	}
	if err == nil {
		p.multicast.key = secret.Expand(token, "beacon", len(secret.Key{}))
	}
	return p, err
}

// sequenceLen is the length of a job's port sequence. With a hundred simultaneous jobs on one host
// and the default range, the probability that one of them finds no free port is about 10^-5.
const sequenceLen = 8

// portsOf returns the port sequence of the job with that public name, within lo to hi; a shorter
// one if the range is smaller. It is the same on all agents of the job, also on those with a
// different secret, so that they find each other and report that.
func portsOf(public []byte, lo, hi int) []int {
	var ports []int
	for i := uint64(0); len(ports) < min(sequenceLen, hi-lo+1); i++ {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(slices.Clone(public), i))
		port := lo + int(binary.BigEndian.Uint64(sum[:])%uint64(hi-lo+1))
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// masterLast returns ports with those last that the program may use: master, unless it is 0, and
// the ports above it. An agent that searches tries all ports, whatever its own MASTER_PORT is.
func masterLast(ports []int, master int) (sorted []int) {
	var last []int
	for _, port := range ports {
		if master > 0 && port >= master && port <= master+masterport.SparePorts {
			last = append(last, port)
		} else {
			sorted = append(sorted, port)
		}
	}
	return append(sorted, last...)
}

// sharedName takes the place of a job's name in the key and the ports of a shared store, which is
// that of many jobs and is run by no agent. No job can have this name.
const sharedName = "\x00shared store"

func sharedPorts(c *Config) []int {
	return portsOf(secret.PublicName(sharedName), c.PortLo, c.PortHi)
}

// sharedDialer is for the shared store of the user with that token.
func sharedDialer(c *Config, token []byte) (*gate.Dialer, error) {
	key := secret.DeriveKey(token, sharedName)
	return gate.NewDialer(&key, nil, c.Host, "")
}
