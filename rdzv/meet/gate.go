package meet

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"rdzv/rdzv/secret"
)

// handshakeTimeout is how long a connection may take to prove that it is of the job.
const handshakeTimeout = 5 * time.Second

// Guard makes one listener of several: its Accept returns only connections that have passed the handshake, as *tls.Conn.
// Strangers cost little: see pending.
//
// told is called, from goroutines of the listener, for each stranger that may be one of the user's own (see Stranger), once an address; it may be nil.
// The listener that Meet hands to a HostFunc is guarded already, with Config.Say as the one that is told.
func Guard(listeners []net.Listener, cfg *tls.Config, told func(Stranger)) net.Listener {
	g := newGate(listeners, cfg, told)
	g.decide(nil)
	return g
}

// A gate is the listener that Guard describes. Between the handshake and Accept, a connection waits until it is decided
// whether this agent hosts; the greeting says so.
type gate struct {
	listeners []net.Listener
	tls       *tls.Config // nil: plain
	public    string      // the job's, to tell who is a stranger
	id        instance
	told      func(Stranger)

	ctx     context.Context
	stop    context.CancelFunc
	done    sync.WaitGroup
	in      chan net.Conn // verified, greeted, to be accepted
	pending *pending
	visits  atomic.Int64  // how many passed the handshake
	decided chan struct{} // closed when answer is there

	mu     sync.Mutex
	answer error              // nil: this agent hosts; a movedError: another
	parked map[*stranger]bool // those who wait for the decision
	said   map[netip.Addr]bool
}

func newGate(listeners []net.Listener, cfg *tls.Config, told func(Stranger)) *gate {
	g := &gate{
		listeners: listeners, told: told, in: make(chan net.Conn), pending: newPending(), id: newInstance(),
		decided: make(chan struct{}), parked: map[*stranger]bool{}, said: map[netip.Addr]bool{},
	}
	if cfg != nil {
		g.tls = noteHello(cfg)
		g.public = secret.PublicOf(cfg.Certificates[0].Leaf.DNSNames[0])
		g.id = instanceOf(cfg.Certificates[0].Leaf)
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	for _, l := range listeners {
		g.done.Go(func() { g.serve(l) })
	}
	return g
}

// newPlainGate is the gate of a job without a key.
func newPlainGate(listeners []net.Listener, public []byte, told func(Stranger)) *gate {
	g := newGate(nil, nil, told)
	g.listeners, g.public = listeners, hex.EncodeToString(public)
	for _, l := range listeners {
		g.done.Go(func() { g.serve(l) })
	}
	return g
}

// An instance is one run of one store: the digest of the certificate it was started with.
type instance [16]byte

func instanceOf(cert *x509.Certificate) instance {
	sum := sha256.Sum256(cert.Raw)
	return instance(sum[:len(instance{})])
}

// decide ends the waiting of those who passed the handshake; later decisions hold for those who come later.
func (g *gate) decide(answer error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = answer
	select {
	case <-g.decided:
	default:
		close(g.decided)
	}
}

func (g *gate) serve(l net.Listener) {
	for g.ctx.Err() == nil {
		g.pending.room(g.ctx)
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptors left, say: those in are unharmed, and it may pass
			pause(g.ctx, 20*time.Millisecond)
			continue
		}
		s := g.pending.add(conn)
		g.done.Go(func() { g.admit(s) })
	}
}

// admit takes one connection from the handshake to Accept.
func (g *gate) admit(s *stranger) {
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

func (g *gate) handshake(s *stranger) (net.Conn, error) {
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

func (g *gate) greet(conn net.Conn) error {
	g.mu.Lock()
	answer := g.answer
	g.mu.Unlock()
	var moved movedError
	switch {
	case g.ctx.Err() != nil:
		return g.ctx.Err()
	case errors.As(answer, &moved):
		writeLine(conn, "moved", moved.to.String())
		return answer
	case g.tls != nil:
		return writeLine(conn, "ok", formatAddrPorts(addrsOf(g.listeners)))
	}
	return writeLine(conn, "ok", formatAddrPorts(addrsOf(g.listeners)), hex.EncodeToString(g.id[:]))
}

// Accept gives the next connection of an agent of the job.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case conn := <-g.in:
		return conn, nil
	case <-g.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Addr is the address of the first of the listeners.
func (g *gate) Addr() net.Addr { return g.listeners[0].Addr() }

// Close ends listening and whatever has not been accepted, and waits for both. Accepted connections live on.
func (g *gate) Close() error {
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

// pause waits for d, and reports whether ctx lasted for so long.
func pause(ctx context.Context, d time.Duration) (lasts bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
