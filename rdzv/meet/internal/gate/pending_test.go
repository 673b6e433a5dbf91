package gate

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rdzv/rdzv/secret"
)

// A pipe is one end of a net.Pipe whose other end has an address.
type pipe struct {
	net.Conn
	from   netip.AddrPort
	closed atomic.Bool
}

func (p *pipe) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(p.from) }
func (p *pipe) Close() error         { p.closed.Store(true); return p.Conn.Close() }

// A pipeListener accepts pipes.
type pipeListener struct {
	conns chan net.Conn
	end   func()
	ended chan struct{}
}

func listenPipes() pipeListener {
	l := pipeListener{conns: make(chan net.Conn), ended: make(chan struct{})}
	l.end = sync.OnceFunc(func() { close(l.ended) })
	return l
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error { l.end(); return nil }

func (l pipeListener) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:1"))
}

// connect returns the client's end of a new connection from that address.
func (l pipeListener) connect(from string) net.Conn {
	ours, theirs := net.Pipe()
	l.conns <- &pipe{Conn: theirs, from: netip.AddrPortFrom(netip.MustParseAddr(from), 1)}
	return ours
}

// A client that stops is closed after a limited time, which depends on where it stops.
func TestClientsThatStop(t *testing.T) {
	key := secret.DeriveKey(testToken, "job")
	for name, test := range map[string]struct {
		proof bool
		send  int // bytes of the first message
		want  time.Duration
	}{
		"nothing sent":               {false, 0, handshakeTimeout},
		"part of a header":           {false, 3, handshakeTimeout},
		"part of the first message":  {false, 100, handshakeTimeout},
		"first message":              {false, -1, otherTimeout},
		"first message with a proof": {true, -1, handshakeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, l := gateOnPipes(t, key)
				defer g.Close()
				hello := firstMessage(t, key, test.proof)
				if test.send >= 0 {
					hello = hello[:test.send]
				}
				began := time.Now()
				conn := l.connect("10.0.0.2")
				go conn.Write(hello)
				io.Copy(io.Discard, conn)
				if took := time.Since(began); took != test.want {
					t.Errorf("the connection was closed after %v, want %v", took, test.want)
				}
			})
		})
	}
}

func gateOnPipes(t *testing.T, key secret.Key) (*Gate, pipeListener) {
	t.Helper()
	l := listenPipes()
	g, err := New([]net.Listener{l}, &key, nil, Order{}, func(Rejection) {})
	if err != nil {
		t.Fatal(err)
	}
	g.Admit()
	return g, l
}

// firstMessage returns the ClientHello of an agent, or of a client without the key.
func firstMessage(t *testing.T, key secret.Key, proof bool) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	cfg := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	if proof {
		cfg.NextProtos = []string{newProof(proofKey(&key))}
	}
	go tls.Client(theirs, cfg).Handshake()
	hello := make([]byte, maxHello)
	n, err := ours.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	return hello[:n]
}

// All places of clients without a proof are taken, and more such clients wait. An agent is admitted
// at once, also from the same address. Then the places are passed on, and all clients are closed.
func TestAgentPassesHalfOpenHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := secret.DeriveKey(testToken, "job")
		g, l := gateOnPipes(t, key)
		defer g.Close()
		hello := firstMessage(t, key, false)
		began := time.Now()
		var attackers sync.WaitGroup
		for range 2 * otherPlaces {
			attackers.Go(func() {
				conn := l.connect("10.0.0.2")
				go conn.Write(hello)
				io.Copy(io.Discard, conn)
			})
		}
		synctest.Wait()
		dialer, err := NewDialer(&key, nil, "node2", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{"10.0.0.2", "10.0.0.3"} {
			conn, _, err := dialer.authenticate(context.Background(), l.connect(from))
			if err == nil {
				_, err = readGreeting(conn)
			}
			if took := time.Since(began); err != nil || took > 0 {
				t.Fatalf("an agent at %s connected after %v: %v", from, took, err)
			}
			accepted, err := g.Accept()
			if err != nil {
				t.Fatal(err)
			}
			accepted.(*tls.Conn).NetConn().Close()
			conn.(*tls.Conn).NetConn().Close()
		}
		attackers.Wait()
		if took := time.Since(began); took != 2*otherTimeout {
			t.Errorf("the other connections were closed within %v, want %v", took, 2*otherTimeout)
		}
		synctest.Wait()
		g.pending.mu.Lock()
		defer g.pending.mu.Unlock()
		if g.pending.count != 0 || g.pending.others != 0 || len(g.pending.groups) != 0 {
			t.Errorf("left: %+v", g.pending)
		}
	})
}

// If there are too many connections, the oldest of the address with the most is closed. At the end
// all are.
func TestOldestOfTheLargestGroupIsClosed(t *testing.T) {
	p := newPending()
	p.max = 4
	var pipes []*pipe
	open := func() (list []int) {
		for i, pipe := range pipes {
			if !pipe.closed.Load() {
				list = append(list, i)
			}
		}
		return list
	}
	add := func(from string) {
		_, conn := net.Pipe()
		pipes = append(pipes, &pipe{Conn: conn, from: netip.MustParseAddrPort(from + ":1")})
		p.add(pipes[len(pipes)-1])
	}
	for _, from := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.3"} {
		add(from)
	}
	for i, want := range [][]int{{0, 2, 3, 4}, {0, 3, 4, 5}} {
		add([]string{"10.0.0.2", "10.0.0.4"}[i])
		if got := open(); !slices.Equal(got, want) || p.count != p.max {
			t.Errorf("open connections %v, %d counted; want %v", got, p.count, want)
		}
	}
	p.close()
	add("10.0.0.5")
	if got := open(); len(got) > 0 || p.count != 0 {
		t.Errorf("connections %v are open after the end, %d counted", got, p.count)
	}
}
