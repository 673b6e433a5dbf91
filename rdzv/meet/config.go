package meet

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"

	"rdzv/rdzv/meet/internal/hosts"
)

// Config says what an agent knows of itself and of its surroundings; everything from outside is an
// argument.
type Config struct {
	Launcher  string            // name of the launcher as detected or given: openmpi, pmi, slurm, manual, ...; "" lets Env decide
	Env       map[string]string // the environment
	Rank      int               // of this agent among the agents; -1 by hand
	Size      int               // agents in all; -1 unknown
	LocalSize int               // agents on this node; -1 unknown
	Nodes     int               // nodes of the job; -1 unknown
	Master    string            // name or address of rank 0's host, where the launcher gives it; "" elsewhere
	Job       string            // the job's identity, equal on all its agents and on no other: --job, else the launcher's, else a digest of the line

	Store    string                 // --store: HOST or HOST:PORT
	Join     string                 // RDZV_JOIN: ADDR:PORT/KEY
	Token    func() ([]byte, error) // gives the user's token; called only where the key comes from it (see secret.LoadToken)
	Insecure bool                   // --insecure: no key, no TLS
	Net      []string               // --net, see CheckNet
	PortLo   int                    // first and last port the store may listen on; 0 is DefaultPortLo and DefaultPortHi
	PortHi   int

	Host       string                                                             // this host's name
	RuntimeDir string                                                             // a directory of this user and host with mode 0700, for locks and what must be remembered; "": there is none, and this agent hosts only if no other can
	Proc       fs.FS                                                              // /proc, of which this process's own parts are read too
	PID        int                                                                // of this process
	Interfaces func() ([]Interface, error)                                        // nil: those of the system
	Resolve    func(ctx context.Context, host string) ([]netip.Addr, error)       // addresses of a name; nil: the system's resolver
	Scontrol   func(ctx context.Context, args ...string) (stdout []byte, _ error) // runs Slurm's scontrol; nil: there is none
	Notify     func(Notice)                                                       // hears of what the user should know meanwhile; may be called by several goroutines; nil: nobody
}

// An Interface is one network interface of this host.
type Interface = hosts.Interface

// HostFunc starts the store on this agent and returns when it serves on the listener. That is
// guarded already (see gate.Gate): Accept gives connections that have passed the handshake, with
// the store's own protocol to follow. It may end the store at ctx's end; the listener is closed by
// whoever is first, the store or Meeting.Close.
type HostFunc func(ctx context.Context, l net.Listener) error

// Format hides everything that may hold a secret.
func (c Config) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "meet config {launcher %q, rank %d of %d, store %q}", c.Launcher, c.Rank, c.Size, c.Store)
}

func (c *Config) fill() {
	if c.PortLo == 0 {
		c.PortLo, c.PortHi = DefaultPortLo, DefaultPortHi
	}
	if c.Interfaces == nil {
		c.Interfaces = hosts.System
	}
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if c.Notify == nil {
		c.Notify = func(Notice) {}
	}
}

func (c *Config) check() error {
	if c.PortLo < 1 || c.PortHi > 65535 || c.PortLo > c.PortHi {
		return fmt.Errorf("cannot use ports %d-%d: not a range within 1-65535", c.PortLo, c.PortHi)
	}
	return CheckNet(c.Net)
}

// CheckNet tells whether these can be the values of --net: a network (10.78.0.0/24), an interface's
// name (eth1), or a name not to use (!docker0).
func CheckNet(specs []string) error {
	_, err := hosts.ParseFilter(specs)
	return err
}

// oneNode says that all agents are on this host, as far as the launcher tells.
func (c *Config) oneNode() bool { return c.Nodes == 1 || c.Size > 0 && c.LocalSize == c.Size }

// byHand says that no launcher gave this agent a rank.
func (c *Config) byHand() bool { return c.Rank < 0 }

// from says that the launcher is one of those, or may be: none was named.
func (c *Config) from(launchers ...string) bool {
	return c.Launcher == "" || slices.Contains(launchers, c.Launcher)
}
