package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"rdzv/rdzv"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/secret"
)

// connection is this agent's way to the store of its job.
type connection struct {
	client  *clientv3.Client
	meeting *meet.Meeting // nil where there is nobody to meet
	hosted  *hosted       // nil where another agent hosts
	addr    string        // of this end, "" in the store's own process
	ways    []rdzv.Way    // from this node to the store
	dir     string        // runtime directory, "" if there is none
	noDir   error         // why; only the agent that hosts the store needs one
}

func (c *connection) hosting() bool { return c.hosted != nil }
func (c *connection) local() string { return c.addr }

// remote is the store's address as this agent dialled it.
func (c *connection) remote() string {
	if c.hosting() || c.meeting == nil {
		return ""
	}
	return c.meeting.Addr.Addr().String()
}

// connect finds the store, or hosts it. What it has begun when it fails is for the
// caller to close.
func (g *agent) connect(ctx context.Context) error {
	if g.insecure && g.place.Rank <= 0 {
		g.say.line("--insecure: this job has no secret and no encryption, anybody who reaches its hosts can take part in it")
	}
	g.useRuntimeDir()
	if g.agents == 1 {
		return g.host(ctx, g.conn, nil)
	}
	return g.meet(ctx, g.conn)
}

// useRuntimeDir finds the runtime directory, and removes what killed agents have left
// in it. Only the agent that hosts the store cannot do without it.
func (g *agent) useRuntimeDir() {
	if g.conn.dir, g.conn.noDir = runtimeDir(g.env); g.conn.noDir != nil {
		g.problems = withProblem(g.problems, g.conn.noDir)
		return
	}
	meet.Tidy(g.conn.dir)
	removeOldErrorFiles(g.conn.dir, time.Now())
}

// meet looks for the other agents.
func (g *agent) meet(ctx context.Context, c *connection) (err error) {
	host := func(ctx context.Context, l net.Listener) error {
		return g.host(ctx, c, l)
	}
	if c.meeting, err = meet.Meet(ctx, g.meetConfig(c.dir), host); err != nil {
		return g.adviseOnPort(err)
	}
	return nil
}

// adviseOnPort says what to do about a port that is taken.
func (g *agent) adviseOnPort(err error) error {
	host, port, _ := meet.ParseStore(g.store)
	switch {
	case !errors.Is(err, syscall.EADDRINUSE):
		return err
	case port != 0:
		return advice{err, fmt.Sprintf("--store %s, without a port, takes one that is free: each job its own", host)}
	}
	return advice{err, "--port-range LO-HI names other ports"}
}

// dial makes the client of a store in another process, and waits for its
// connection, whose own address tells which interface leads to the store.
func (g *agent) dial(ctx context.Context) error {
	c := g.conn
	if c.hosting() {
		return nil
	}
	first := make(chan string, 1)
	dial := func(ctx context.Context) (net.Conn, error) {
		conn, err := c.meeting.Dial(ctx)
		if err != nil {
			return nil, err
		}
		select {
		case first <- hostOf(conn.LocalAddr()):
		default:
		}
		return conn, nil
	}
	var err error
	if c.client, err = rdzv.Dial(dial, g.peerTimeout); err != nil {
		return err
	}
	c.client.ActiveConnection().Connect()
	select {
	case c.addr = <-first:
		if g.place.LocalRank <= 0 { // for all agents of its node
			c.ways = waysOf(c.meeting.Reach(ctx), c.addr)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waysOf are the ways to the store; own is this end of the connection.
func waysOf(list []meet.Way, own string) []rdzv.Way {
	var ways []rdzv.Way
	for _, w := range list {
		way := rdzv.Way{Store: w.Store.String(), Own: own}
		if w.Own.IsValid() {
			way.Own = w.Own.String()
		}
		ways = append(ways, way)
	}
	return ways
}

func hostOf(a net.Addr) string {
	addr, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return ""
	}
	return addr.Addr().Unmap().String()
}

// makeWay moves all members of this store on to another as soon as one turns up
// that is the better one, until stay: by hand two agents may have begun to host
// before they heard of each other.
func (g *agent) makeWay() (stay func()) {
	m := g.conn.meeting
	if m == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	if g.conn.hosting() {
		wg.Go(func() {
			select {
			case <-m.BetterHost:
				g.tell(func(ctx context.Context) error {
					moved, err := g.session.Move(ctx, "elsewhere")
					if moved {
						m.Redirect()
					}
					return err
				})
			case <-ctx.Done():
			}
		})
	}
	return func() { cancel(); wg.Wait(); m.Agreed() }
}

// move leaves this store, with all who are in it, and joins the other.
func (g *agent) move() error {
	g.settle(nil)
	if _, err := g.session.Leave(context.Background()); err != nil {
		g.say.detail("%v", err) // the other store is looked for all the same
	}
	ctx := g.outside.joining
	return g.joinAt(ctx, g.again(ctx))
}

// again looks for another store than the one this connection has. What is left of
// the connection when it fails is for the caller to close.
func (g *agent) again(ctx context.Context) error {
	c := g.conn
	if c.hosting() {
		c.hosted.close()
		c.hosted = nil
	} else {
		c.client.Close()
	}
	before := c.meeting
	c.client, c.meeting = nil, nil // Again closes the one before, whatever it returns
	m, err := before.Again(ctx)
	if err != nil {
		return err
	}
	c.meeting = m
	return nil
}

// close lets go of the store. The meeting comes last: its end tells the launcher
// that this task is over.
func (c *connection) close() {
	switch {
	case c.hosted != nil:
		c.hosted.close()
	case c.client != nil:
		awaitEnd(c.client.ActiveConnection())
		c.client.Close()
	}
	if c.meeting != nil {
		c.meeting.Close()
	}
}

// awaitEnd waits until the host has closed the store, which it does when all have
// said goodbye. Many launchers kill the other tasks as soon as the first has
// exited with an error: the host must have cleaned up by then.
func awaitEnd(conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	for conn.GetState() == connectivity.Ready && conn.WaitForStateChange(ctx, connectivity.Ready) {
	}
}

// meetConfig says to package meet what this agent knows.
func (g *agent) meetConfig(dir string) meet.Config {
	return meet.Config{
		Launcher: string(g.place.Launcher), Env: g.env, Rank: g.place.Rank, Size: g.agents,
		LocalSize: g.place.LocalSize, Nodes: g.place.Nodes, Master: g.place.Master, Job: g.name,
		Store: g.store, Join: g.env["RDZV_JOIN"], Insecure: g.insecure, Net: g.net,
		PortLo: g.portLo, PortHi: g.portHi,
		Token: func() ([]byte, error) {
			return secret.LoadToken(secret.TokenSource{
				File: g.tokenFile, Text: g.env["RDZV_TOKEN"], Home: home(g.env), Temp: tempDir(g.env), UID: os.Geteuid(),
			})
		},
		Proc:       os.DirFS("/proc"),
		RuntimeDir: dir, Host: host(), PID: os.Getpid(),
		Scontrol: func(ctx context.Context, args ...string) ([]byte, error) {
			return exec.CommandContext(ctx, "scontrol", args...).Output()
		},
		Say:      func(text string) { g.say.news("%s", text) },
		Terminal: g.say.screen.terminal,
	}
}
