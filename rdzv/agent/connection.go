package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/identity"
	"rdzv/rdzv/agent/internal/ifname"
	"rdzv/rdzv/agent/internal/refusals"
	"rdzv/rdzv/agent/internal/storehost"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/secret"
	"rdzv/wrap"
)

// connection is this agent's connection to the store of its job.
type connection struct {
	local   *Local
	events  *reporter
	client  *clientv3.Client
	meeting *meet.Meeting   // nil for a single agent and with Config.Etcd
	hosted  *storehost.Host // nil if another agent hosts the store
	unable  error           // why this agent cannot run workers beside it, or nil
	addr    string          // of this node for others, "" in the store's own process
	reached string          // of this end, if that is another one; otherwise ""
	paths   []rdzv.Path     // from this node to the store
	dir     string          // runtime directory, "" if there is none
	inXDG   bool            // it is XDG_RUNTIME_DIR
	own     *secret.Key     // of the only agent of its job
	noDir   error           // why there is none; only the host of the store requires it
	silent  atomic.Bool     // the store's host was silent, so that the connection broke

	refusals refusals.List
}

func (c *connection) hosting() bool { return c.hosted != nil }

// external tells whether the store is an existing etcd cluster.
func (c *connection) external() bool { return c.local.Config.Etcd.Given() }

// sharedStore tells whether the store is one that many jobs share.
func (c *connection) sharedStore() bool { return c.meeting != nil && c.meeting.Shared }

// lost is why a store that no agent hosts was lost, for an error that ended the session.
func (c *connection) lost(err error) error {
	if !c.sharedStore() || !errors.Is(err, rdzv.ErrStoreLost) {
		return err
	}
	reason := err.Error()
	if lost, is := errors.AsType[*rdzv.StoreLostError](err); is {
		reason = lost.Why.Error()
	}
	if c.meeting.Restarted() {
		reason = "it was started again"
	}
	return fmt.Errorf("lost the shared store at %v: %s", c.meeting.Addr, reason)
}

// elects tells whether no agent hosts the store, so that the agents elect the one that leads.
func (c *connection) elects() bool { return c.external() || c.sharedStore() }

// alone tells whether no other agent can connect to the store.
func (c *connection) alone() bool { return c.meeting == nil && !c.external() }

// store is where the store is.
func (c *connection) store() string {
	switch {
	case c.external():
		return c.local.Config.Etcd.String()
	case c.meeting != nil:
		return c.meeting.Addr.String()
	}
	return ""
}

// listens are the addresses at which others find the store of this agent.
func (c *connection) listens() (list []string) {
	if c.hosting() && c.meeting != nil {
		for _, a := range c.meeting.Addrs {
			list = append(list, a.String())
		}
	}
	return list
}

// address is that of this node on its way to the store.
func (c *connection) address() string {
	if c.hosting() {
		return c.meeting.Addr.Addr().String()
	}
	return c.addr
}

// key is the job's key, nil without one.
func (c *connection) key() *secret.Key {
	switch {
	case c.external():
		return nil
	case c.meeting != nil:
		return c.meeting.Key
	}
	if c.own == nil {
		key := secret.NewKey()
		c.own = &key
	}
	return c.own
}

// dialEtcd makes a client of an existing cluster. The address of this node, which may become
// MASTER_ADDR, is that on the way to a member, unless the member is on this node itself or
// Config.Networks excludes it.
func (c *connection) dialEtcd(ctx context.Context) (err error) {
	first := make(chan string, 1)
	connected := func(conn net.Conn) {
		select {
		case first <- host.AddrOf(conn.LocalAddr()):
		default:
		}
	}
	l := c.local
	next := nextSearchReport(l)
	if !l.FirstOfNode() {
		next = nil
	}
	if c.client, err = l.Config.Etcd.Dial(ctx, c.events.unavailable(next), connected); err != nil {
		return err
	}
	c.addr = <-first
	addrs, err := meet.OwnAddrs(c.meetConfig())
	c.reached = ""
	if err == nil && len(addrs) > 0 && !slices.Contains(addrs, c.addr) {
		c.reached, c.addr = c.addr, addrs[0]
	}
	return err
}

// dial makes a client of a store in another process and waits for its connection, whose own address
// tells which interface leads to the store.
func (c *connection) dial(ctx context.Context) (err error) {
	c.paths = nil
	switch {
	case c.hosting():
		c.paths, err = c.allowedPaths()
		return err
	case c.external():
		return nil
	}
	first := make(chan string, 1)
	dial := func(ctx context.Context) (net.Conn, error) {
		conn, err := c.meeting.Dial(ctx)
		if err != nil {
			return nil, err
		}
		c.silent.Store(false)
		select {
		case first <- host.AddrOf(conn.LocalAddr()):
		default:
		}
		return storeConn{conn, c}, nil
	}
	if c.client, err = rdzv.Dial(dial, c.local.Config.PeerTimeout); err != nil {
		return err
	}
	c.client.ActiveConnection().Connect()
	select {
	case used := <-first:
		if !c.meeting.Own.IsValid() {
			return c.useAllowed(used)
		}
		c.reached, c.addr = "", c.meeting.Own.String()
		if c.local.FirstOfNode() { // on behalf of all agents of this node
			c.paths = pathsOf(c.meeting.Reach(ctx))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// useAllowed makes an address that Config.Networks allows that of this node, because the store is
// reached from the other one, which is excluded.
func (c *connection) useAllowed(reached string) error {
	addrs, err := meet.OwnAddrs(c.meetConfig())
	if err == nil {
		c.reached, c.addr = reached, addrs[0]
	}
	return err
}

// networks are the addresses of this node to which Config.Networks restricts it; none without it,
// or if it allows none, which is an error of the connection.
func (l *Local) networks() ifname.Networks {
	given := l.Config.Networks
	if len(given) == 0 {
		return ifname.Networks{}
	}
	allowed, _ := meet.OwnAddrs(meet.Config{Net: given, Proc: procfs.System})
	return ifname.Networks{Allowed: allowed, Words: strings.Join(given, ",")}
}

// checkNetworks returns why this agent cannot run its workers if no network that Config.Networks
// allows leads to the agent that hosts the store. A store that no agent hosts may be anywhere.
func (c *connection) checkNetworks() error {
	if c.reached == "" || c.elects() {
		return nil
	}
	return c.local.excludedError(c.reached, fmt.Sprintf("the store at %v", c.meeting.Addr.Addr()))
}

// excludedError says that only an address of this node that Config.Networks excludes leads to
// what the job needs.
func (l *Local) excludedError(own, needed string) error {
	return hint.With(
		fmt.Errorf("cannot use --net %s: only %s (%s), which it excludes, leads to %s",
			strings.Join(l.Config.Networks, ","), identity.Interface(own), own, needed),
		"give all nodes --net with a network that connects them",
	)
}

// allowedPaths are the addresses of this node, which hosts the store, that Config.Networks allows;
// none without it.
func (c *connection) allowedPaths() (paths []rdzv.Path, err error) {
	if len(c.local.Config.Networks) == 0 || c.alone() || c.local.layout().OnOneHost() {
		return nil, nil
	}
	addrs, err := meet.OwnAddrs(c.meetConfig())
	for _, a := range addrs {
		listens := func(at netip.AddrPort) bool { return at.Addr().String() == a }
		if slices.ContainsFunc(c.meeting.Addrs, listens) {
			paths = append(paths, rdzv.Path{Store: a, Own: a})
		}
	}
	return paths, err
}

// storeConn is a connection to the store of another agent.
type storeConn struct {
	net.Conn
	of *connection
}

// NetConn is the connection below this one, as tls.Conn has it.
func (s storeConn) NetConn() net.Conn { return s.Conn }

// Silent notes that the host of the store was silent for the peer timeout.
func (s storeConn) Silent() { s.of.silent.Store(true) }

// pathsOf are the routes to the store; own is the address of this end of the connection.
func pathsOf(list []meet.Way) []rdzv.Path {
	var paths []rdzv.Path
	for _, w := range list {
		paths = append(paths, rdzv.Path{Store: w.Store.String(), Own: w.Own.String()})
	}
	return paths
}

// again looks for another store than the present one. If it fails the caller must close what is
// left of the connection.
func (c *connection) again(ctx context.Context) (err error) {
	if c.hosting() {
		c.closeHosted()
		c.hosted = nil
	} else {
		c.client.Close()
	}
	c.client = nil
	if c.external() {
		return c.dialEtcd(ctx)
	}
	c.meeting, err = c.meeting.Again(ctx) // closes the previous meeting in any case
	return err
}

// leaveStore closes the connection to the store of another agent, whose job goes on.
func (c *connection) leaveStore() {
	if c.client != nil && !c.hosting() {
		c.client.Close()
		c.client = nil
	}
}

// close closes the connection. The meeting comes last: under Hydra its end tells the launcher that
// this task has ended.
func (c *connection) close() {
	switch {
	case c.hosted != nil:
		c.closeHosted()
	case c.client != nil && c.elects():
		c.client.Close()
	case c.client != nil:
		awaitEnd(c.client.ActiveConnection())
		c.client.Close()
	}
	if c.meeting != nil {
		c.meeting.Close()
	}
}

func (c *connection) closeHosted() {
	if err := c.hosted.Close(); err != nil {
		c.events.diagnose(Warning, err) // what is left of the store
	}
}

// awaitEnd waits until the host has closed the store, which it does when all agents have left. Many
// launchers kill the other tasks as soon as the first one exits with an error: by then the host
// must have removed its files.
func awaitEnd(conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), storehost.DrainTimeout)
	defer cancel()
	for conn.GetState() == connectivity.Ready && conn.WaitForStateChange(ctx, connectivity.Ready) {
	}
}

// loadToken returns the token. The first agent of the host reports if it is in an unusual file.
func (c *connection) loadToken() ([]byte, error) {
	elsewhere := func(path string, cause error) {
		if c.local.FirstOfNode() {
			c.events.diagnose(Warning, fmt.Errorf("using the token in %s: %w", path, cause))
		}
	}
	return c.local.token().Load(c.events.tokenCreated, elsewhere)
}

// meetConfig describes this agent to package meet: for the meeting, and for the addresses of this
// node and the names of the launcher's nodes, also if etcd is the store.
func (c *connection) meetConfig() meet.Config {
	l, a := c.local, c.local.Config
	localSize, nodes := l.Placement.LocalSize, l.Placement.Nodes
	if a.TasksMissing {
		localSize, nodes = envmap.Unknown, envmap.Unknown
	}
	return meet.Config{
		Launcher: string(l.Placement.Launcher), Env: l.env, Size: l.Agents,
		Rank: l.all().first().Placement.Rank, OtherPMI: l.all().otherPMI(),
		NodeRank:  l.Placement.NodeRank,
		LocalSize: localSize, Nodes: nodes, Master: l.Placement.Master,
		MasterHint: l.layout().MasterHint(),
		Job:        l.Job,
		Hosts:      a.Started && a.NodeRank != nil && *a.NodeRank == 0,
		Store:      a.Store, Join: a.Join, Insecure: a.Insecure, Net: a.Networks,
		PortLo: a.PortLow, PortHi: a.PortHigh, MasterPort: a.MasterPort,
		Token:      c.loadToken,
		Proc:       procfs.System,
		RuntimeDir: c.dir, Host: host.Name(), PID: os.Getpid(),
		Scontrol: func(ctx context.Context, args ...string) ([]byte, error) {
			path, err := wrap.Find("scontrol", a.Environ, "")
			if err != nil {
				return nil, err
			}
			cmd := exec.CommandContext(ctx, path, args...)
			cmd.Env = a.Environ
			return cmd.Output()
		},
		NextReport: nextSearchReport(l),
		Notify: func(n meet.Notice) {
			c.refusals.Note(n)
			c.events.send(noticed(n, a.ShowJoinLine, l.token().Place()))
		},
	}
}
