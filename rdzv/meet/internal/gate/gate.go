// Package gate admits the agents of one job, and nobody else, to the job's store. It has both
// sides: the listener (Gate) and the client (Dialer).
//
// It does not decide which addresses are used or which agent hosts the store, and does not know the
// protocol that follows on an admitted connection.
package gate

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"rdzv/rdzv/meet/internal/wire"
	"rdzv/rdzv/secret"
)

// A Gate combines several listeners into one. Its Accept returns only connections that have passed
// the handshake. Between handshake and Accept a connection waits until Admit has been called. The
// number of connections in the handshake is limited (see unauthenticated).
type Gate struct {
	listeners []net.Listener
	tls       *tls.Config
	public    string // public name of the job, in hexadecimal
	id        Instance
	report    func(Rejection)

	ctx      context.Context
	stop     context.CancelFunc
	done     sync.WaitGroup
	accepted chan net.Conn // connections for Accept
	passed   atomic.Bool   // a connection has passed the handshake
	full     atomic.Bool   // see Full
	decided  chan struct{} // closed by the first call of Admit

	unauthenticated *unauthenticated

	mu      sync.Mutex
	clients map[*incoming]bool // see Clients; true if it has been admitted
}

// New opens a gate that owns the listeners, for the agents of the job with that key; if key is nil
// (--insecure), for all that have the job's public name. The gate's goroutines call report for each
// connection that was rejected but seems to come from another agent of the same user. The gate's ID
// begins with order.
func New(
	listeners []net.Listener, key *secret.Key, public []byte, order Order, report func(Rejection),
) (*Gate, error) {
	key = orOpen(key, public)
	cfg, err := key.ServerTLS(hex.EncodeToString(order[:]))
	if err != nil {
		closeAll(listeners)
		return nil, err
	}
	recordHello(cfg)
	g := &Gate{
		listeners: listeners, tls: cfg, public: key.Public(), report: report,
		id: instanceOf(cfg.Certificates[0].Leaf), accepted: make(chan net.Conn),
		unauthenticated: newUnauthenticated(), decided: make(chan struct{}),
		clients: map[*incoming]bool{},
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	for _, l := range listeners {
		g.done.Go(func() { g.serve(l) })
	}
	return g, nil
}

// orOpen returns the key, or if it is nil that of the job with the public name.
func orOpen(key *secret.Key, public []byte) *secret.Key {
	if key == nil {
		return new(secret.OpenKey(public))
	}
	return key
}

// ID identifies this run of the store.
func (g *Gate) ID() Instance { return g.id }

// Addrs returns the addresses of the listeners.
func (g *Gate) Addrs() []netip.AddrPort {
	var addrs []netip.AddrPort
	for _, l := range g.listeners {
		addrs = append(addrs, addrOf(l.Addr()))
	}
	return addrs
}

// Passed reports whether any connection has passed the handshake.
func (g *Gate) Passed() bool { return g.passed.Load() }

// Admit admits the connections that wait and those that will follow: this agent hosts the store.
func (g *Gate) Admit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.decided:
	default:
		close(g.decided)
	}
}

// Full means that all agents have joined: from now on only clients without an id are admitted,
// which are members that connect again.
func (g *Gate) Full() { g.full.Store(true) }

// acceptRetry is the time between two calls of accept(2) after an error.
const acceptRetry = 20 * time.Millisecond

func (g *Gate) serve(l net.Listener) {
	for g.ctx.Err() == nil {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as no free file descriptor, which can be temporary
			g.unauthenticated.shrink()
			select {
			case <-g.ctx.Done():
			case <-time.After(acceptRetry):
			}
			continue
		}
		s := g.unauthenticated.add(conn)
		g.done.Go(func() { g.admit(s) })
	}
}

func (g *Gate) greet(conn net.Conn, s *incoming) error {
	switch {
	case g.ctx.Err() != nil:
		return g.ctx.Err()
	case g.full.Load() && g.hasID(s):
		writeLine(conn, "full")
		return ErrFull
	}
	return writeLine(conn, "ok", wire.FormatAddrs(g.Addrs()))
}

// Accept returns the next admitted connection.
func (g *Gate) Accept() (net.Conn, error) {
	select {
	case conn := <-g.accepted:
		return conn, nil
	case <-g.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Addr returns the address of the first listener.
func (g *Gate) Addr() net.Addr { return g.listeners[0].Addr() }

// Close closes the listeners and all connections that Accept has not returned, and waits for the
// gate's goroutines. Accepted connections stay open.
func (g *Gate) Close() error {
	g.stop()
	closeAll(g.listeners)
	g.done.Wait()
	return nil
}
