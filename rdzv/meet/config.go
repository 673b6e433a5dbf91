package meet

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"time"

	"rdzv/internal/interfaces"
	"rdzv/rdzv/meet/internal/hosts"
)

// Config describes an agent and its host. The package reads nothing of that by itself, except where
// a field says so.
type Config struct {
	// Launcher is the name of the launcher: openmpi4, openmpi5, hydra, slurm, none and so on; "" if
	// only Env determines it.
	Launcher string
	Env      map[string]string // environment of this process
	// OtherPMI are descriptors of this process that are the PMI_FD of other tasks of this agent: under
	// Hydra each task takes part in the exchange of values.
	OtherPMI []int
	Rank     int // of this agent's first task; -1 without a launcher
	Size     int // number of tasks, or of agents without a launcher; -1 if unknown
	// NodeRank is that of an agent without a launcher, if the user has given it; otherwise -1. Rank 0
	// is then on the node with node rank 0.
	NodeRank  int
	LocalSize int    // number of agents on this node; -1 if unknown
	Nodes     int    // number of nodes; -1 if unknown
	Master    string // name or address of rank 0's host; "" if unknown
	// MasterHint is for Searching.Hint if Master does not resolve; "" if nothing is known to help.
	MasterHint string
	// Job identifies the job; it is the same on all agents of a job and different for other jobs.
	Job string

	Store string // --store: HOST or HOST:PORT, see ParseStore
	Join  string // RDZV_JOIN: ADDR:PORT/KEY, or several addresses with commas between them
	// Hosts says that this agent hosts the store, whoever the others are: they have its Join.
	Hosts bool
	// Token returns the user's token (see secret.LoadToken). It is called only if the key is
	// derived from the token.
	Token    func() ([]byte, error)
	Insecure bool     // --insecure: a key that everybody can have
	Net      []string // --net, see CheckNet
	// PortLo and PortHi are the first and last port on which the store may listen; if PortLo is 0
	// they are DefaultPortLo and DefaultPortHi. PortLo is also the UDP port of multicast.
	PortLo, PortHi int
	// MasterPort is the MASTER_PORT that the user has given, or 0. The store uses it and the ports
	// above it, which programs use for servers of their own, only if no other port is left.
	MasterPort int

	Host string // name of this host
	// RuntimeDir is a directory on this host with mode 0700 that belongs to this user, for files that
	// agents on this host share. If it is "", this agent does not host a store on the host that
	// --store names.
	RuntimeDir string
	Proc       fs.FS // /proc; nil if there is none
	PID        int   // of this process

	// Interfaces returns the network interfaces of this host; nil uses those of the system.
	Interfaces func() ([]Interface, error)
	// Resolve returns the addresses of a host name; nil uses the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Scontrol runs Slurm's scontrol and returns its standard output; nil if there is none.
	Scontrol func(ctx context.Context, args ...string) ([]byte, error)
	// NextReport returns how long after the beginning of a search Searching is reported next, later
	// than last: the same for the report before, or 0 at first; nil never reports it.
	NextReport func(last time.Duration) time.Duration
	// Notify receives what Meet reports meanwhile, possibly from several goroutines at a time; nil
	// ignores it.
	Notify func(Notice)

	refusedTimeout time.Duration // instead of 30 s, in tests
}

// An Interface is a network interface of this host.
type Interface = hosts.Interface

// A HostFunc starts the store in this process and returns when it accepts connections on l. Accept
// of l returns only authenticated connections, on which the store's protocol follows. If ctx ends
// before that, HostFunc returns an error. Meeting.Close closes l.
type HostFunc func(ctx context.Context, l net.Listener) error

// Default values of Config.PortLo and Config.PortHi. They are below Linux's ephemeral port range,
// which begins at 32768.
const (
	DefaultPortLo = 29600
	DefaultPortHi = 29999
)

// refusedTimeout is how long an agent searches on after the host of the store has refused it.
const refusedTimeout = 30 * time.Second

// Format does not print fields that may contain secrets.
func (c Config) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "meet config {launcher %q, rank %d of %d, store %q}",
		c.Launcher, c.Rank, c.Size, c.Store)
}

func (c *Config) setDefaults() {
	if c.PortLo == 0 {
		c.PortLo, c.PortHi = DefaultPortLo, DefaultPortHi
	}
	if c.Interfaces == nil {
		c.Interfaces = interfaces.List
	}
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	c.refusedTimeout = cmp.Or(c.refusedTimeout, refusedTimeout)
	if c.Notify == nil {
		c.Notify = func(Notice) {}
	}
}

// CheckNet returns an error if specs is not a valid list of values of --net: networks
// (10.78.0.0/24), interfaces (eth1) and interfaces to exclude (!docker0).
func CheckNet(specs []string) error {
	_, err := hosts.ParseFilter(specs)
	return err
}

// oneNode reports whether all agents are known to be on this host.
func (c *Config) oneNode() bool { return c.Nodes == 1 || c.Size > 0 && c.LocalSize == c.Size }

// hasRank reports whether a launcher has given this agent a rank.
func (c *Config) hasRank() bool { return c.Rank >= 0 }

// launcherMayBe reports whether the launcher is one of those, or unknown.
func (c *Config) launcherMayBe(launchers ...string) bool {
	return c.Launcher == "" || slices.Contains(launchers, c.Launcher)
}
