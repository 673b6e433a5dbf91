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

// handshakeTimeout is how long a connection may take to prove that it is of the job.
const handshakeTimeout = 5 * time.Second

// A Gate makes one listener of several: its Accept returns only connections that have passed the
// handshake. Strangers cost little: see pending. Between the handshake and Accept, a connection
// waits until it is decided whether this agent hosts; the greeting says so.
type Gate struct {
	listeners []net.Listener
	tls       *tls.Config // nil: plain
	public    string      // the job's, to tell who is a stranger
	id        Instance
	told      func(Stranger)

	ctx     context.Context
	stop    context.CancelFunc
	done    sync.WaitGroup
	in      chan net.Conn // verified, greeted, to be accepted
	pending *pending
	visits  atomic.Int64  // how many passed the handshake
	decided chan struct{} // closed when answer is there

	mu     sync.Mutex
	answer error              // nil: this agent hosts; a MovedError: another
	parked map[*incoming]bool // those who wait for the decision
}

// New opens a gate on the listeners, which it takes over, to agents of the job with that key; with
// a nil key, to those that give its public name, which is for --insecure. told is called, from
// goroutines of the gate, for each attempt of a stranger that may be one of the user's own (see
// Stranger).
func New(listeners []net.Listener, key *secret.Key, public []byte, told func(Stranger)) (*Gate, error) {
	g := &Gate{
		listeners: listeners, told: told, in: make(chan net.Conn), pending: newPending(), id: newInstance(),
		decided: make(chan struct{}), parked: map[*incoming]bool{},
		public: hex.EncodeToString(public),
	}
	if key != nil {
		cfg, err := key.ServerTLS()
		if err != nil {
			closeAll(listeners)
			return nil, err
		}
		g.tls, g.public, g.id = noteHello(cfg), key.Public(), instanceOf(cfg.Certificates[0].Leaf)
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	for _, l := range listeners {
		g.done.Go(func() { g.serve(l) })
	}
	return g, nil
}

// ID names this run of the store.
func (g *Gate) ID() Instance { return g.id }

// Addrs is where the gate listens.
func (g *Gate) Addrs() []netip.AddrPort { return addrsOf(g.listeners) }

// Visited says that somebody has passed the handshake.
func (g *Gate) Visited() bool { return g.visits.Load() > 0 }

// Admit lets in those who pass the handshake: this agent hosts.
func (g *Gate) Admit() { g.decide(nil) }

// SendTo sends those who pass the handshake to another address: the agent there hosts.
func (g *Gate) SendTo(addr netip.AddrPort) { g.decide(MovedError{addr}) }

// decide ends the waiting of those who passed the handshake; later decisions hold for those who
// come later.
func (g *Gate) decide(answer error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = answer
	select {
	case <-g.decided:
	default:
		close(g.decided)
	}
}

func (g *Gate) serve(l net.Listener) {
	for g.ctx.Err() == nil {
		g.pending.room(g.ctx)
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptors left, say: those in are unharmed, and it may pass
			select {
			case <-g.ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		s := g.pending.add(conn)
		g.done.Go(func() { g.admit(s) })
	}
}

// admit takes one connection from the handshake to Accept.
func (g *Gate) admit(s *incoming) {
	stop := context.AfterFunc(g.ctx, func() { s.Close() })
	defer stop()
	s.SetDeadline(time.Now().Add(handshakeTimeout))
	conn, err := g.handshake(s)
	g.pending.remove(s)
	if err != nil {
		g.tell(s, err)
		s.Close()
		return
	}
	s.SetDeadline(time.Time{})
	g.visits.Add(1)
	g.park(s)
	if err := g.greet(conn); err != nil {
		s.Close()
		return
	}
	stop()
	select {
	case g.in <- conn:
	case <-g.ctx.Done():
		s.Close()
	}
}

func (g *Gate) handshake(s *incoming) (net.Conn, error) {
	if g.tls != nil {
		conn := tls.Server(s, g.tls)
		return conn, conn.HandshakeContext(g.ctx)
	}
	public, host, err := readHello(s)
	if err != nil {
		return nil, err
	}
	s.heard(public, host)
	if public != g.public {
		writeLine(s, "other")
		return nil, ErrOtherJob
	}
	return s.Conn, nil
}

func (g *Gate) greet(conn net.Conn) error {
	g.mu.Lock()
	answer := g.answer
	g.mu.Unlock()
	var moved MovedError
	switch {
	case g.ctx.Err() != nil:
		return g.ctx.Err()
	case errors.As(answer, &moved):
		writeLine(conn, "moved", moved.To.String())
		return answer
	case g.tls != nil:
		return writeLine(conn, "ok", wire.FormatAddrs(addrsOf(g.listeners)))
	}
	return writeLine(conn, "ok", wire.FormatAddrs(addrsOf(g.listeners)), hex.EncodeToString(g.id[:]))
}

// Accept gives the next connection of an agent of the job.
func (g *Gate) Accept() (net.Conn, error) {
	select {
	case conn := <-g.in:
		return conn, nil
	case <-g.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Addr is the address of the first of the listeners.
func (g *Gate) Addr() net.Addr { return g.listeners[0].Addr() }

// Close ends listening and whatever has not been accepted, and waits for both. Accepted connections
// live on.
func (g *Gate) Close() error {
	g.stop()
	var errs []error
	for _, l := range g.listeners {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	g.done.Wait()
	return errors.Join(errs...)
}
