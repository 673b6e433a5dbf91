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

// A client that stops is closed after a limited time, wherever it stops.
func TestClientsThatStop(t *testing.T) {
	key := secret.DeriveKey(testToken, "job")
	for name, send := range map[string]int{ // bytes of the first message
		"nothing sent": 0, "part of a header": 3, "part of the first message": 100, "first message": -1,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, l := gateOnPipes(t, key)
				defer g.Close()
				hello := firstMessage(t)
				if send >= 0 {
					hello = hello[:send]
				}
				began := time.Now()
				conn := l.connect("10.0.0.2")
				go conn.Write(hello)
				io.Copy(io.Discard, conn)
				if took := time.Since(began); took != handshakeTimeout {
					t.Errorf("the connection was closed after %v, want %v", took, handshakeTimeout)
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

// firstMessage returns the ClientHello of a client without the key.
func firstMessage(t *testing.T) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go tls.Client(theirs, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}).Handshake()
	hello := make([]byte, 4096)
	n, err := ours.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	return hello[:n]
}

// As many clients as there may be have not ended their handshakes. An agent is admitted at once, also
// from the same address, in place of the oldest of them. Then all of them are closed.
func TestAgentPassesHalfOpenHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := secret.DeriveKey(testToken, "job")
		g, l := gateOnPipes(t, key)
		defer g.Close()
		g.unauthenticated.max = 128
		hello := firstMessage(t)
		began := time.Now()
		var attackers sync.WaitGroup
		for range g.unauthenticated.max {
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
			conn, _, err := dialer.authenticate(
				context.Background(), l.connect(from), func(Instance) error { return nil })
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
		if took := time.Since(began); took != handshakeTimeout {
			t.Errorf("the other connections were closed within %v, want %v", took, handshakeTimeout)
		}
		synctest.Wait()
		if u := g.unauthenticated; u.count != 0 || len(u.byAddr) != 0 {
			t.Errorf("left: %+v", u)
		}
	})
}

// If there are too many connections, the oldest of the address with the most is closed.
func TestOldestOfTheLargestGroupIsClosed(t *testing.T) {
	p := newUnauthenticated()
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
}
