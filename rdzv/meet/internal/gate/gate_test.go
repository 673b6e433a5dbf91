package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/secret"
)

// listenLocal returns a gate on loopback for the job with that key.
func listenLocal(
	t *testing.T, k secret.Key, report func(Rejection),
) (net.Listener, netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := New([]net.Listener{l}, &k, nil, Order{}, report)
	if err != nil {
		t.Fatal(err)
	}
	g.Admit()
	t.Cleanup(func() { g.Close() })
	return g, addrOf(l.Addr())
}

// echo sends back every byte that it receives on connections of l.
func echo(t *testing.T, l net.Listener) {
	t.Helper()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, ok := conn.(*tls.Conn); !ok {
				t.Errorf("accepted a %T", conn)
			}
			go func() { defer conn.Close(); io.Copy(conn, conn) }()
		}
	}()
}

func dialKey(t *testing.T, k secret.Key, addr netip.AddrPort) (net.Conn, error) {
	t.Helper()
	return dialAs(t, "", k, addr)
}

func dialAs(t *testing.T, id string, k secret.Key, addr netip.AddrPort) (net.Conn, error) {
	t.Helper()
	d, err := NewDialer(&k, nil, "node2", id)
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := d.Dial(t.Context(), addr)
	return conn, err
}

func echoes(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	conn.Write([]byte("x"))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatalf("echo on an admitted connection: %v", err)
	}
}

func TestGateReportsRejections(t *testing.T) {
	reported := make(chan Rejection, 10)
	key := secret.DeriveKey(testToken, "job")
	l, addr := listenLocal(t, key, func(r Rejection) { reported <- r })
	echo(t, l)
	otherToken := secret.DeriveKey([]byte("another token, 24 bytes."), "job")
	if _, err := dialKey(t, otherToken, addr); !errors.Is(err, ErrDifferentToken) {
		t.Errorf("error of a client with a different token: %v", err)
	}
	want := Rejection{Host: "node2", Addr: addr.Addr(), Reason: ErrDifferentToken}
	if got := <-reported; got != want {
		t.Errorf("the gate reports %+v, want %+v", got, want)
	}
	otherJob := secret.DeriveKey(testToken, "job2")
	if _, err := dialKey(t, otherJob, addr); !errors.Is(err, ErrDifferentJob) {
		t.Errorf("error of a client of a different job: %v", err)
	}
	conn, err := dialKey(t, key, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	echoes(t, conn)
}

// Agents without a key (--insecure) are admitted by a gate without one, if they name the same job.
// Those with a key and those without have different secrets, as both sides tell.
func TestAgentsWithoutKey(t *testing.T) {
	key := secret.DeriveKey(testToken, "job")
	public, other := secret.PublicName("job"), secret.PublicName("job2")
	for name, c := range map[string]struct {
		gate, client *secret.Key
		public       []byte // of the client
		want         error
	}{
		"both without a key":       {nil, nil, public, nil},
		"of different jobs":        {nil, nil, other, ErrDifferentJob},
		"only the gate has a key":  {&key, nil, public, ErrDifferentToken},
		"only the agent has a key": {nil, &key, nil, ErrDifferentToken},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			reported := make(chan Rejection, 10)
			g, err := New([]net.Listener{l}, c.gate, public, Order{}, func(r Rejection) { reported <- r })
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			g.Admit()
			echo(t, g)
			d, err := NewDialer(c.client, c.public, "node2", "")
			if err != nil {
				t.Fatal(err)
			}
			conn, _, err := d.Dial(t.Context(), addrOf(l.Addr()))
			if !errors.Is(err, c.want) {
				t.Fatalf("the client has the error %v, want %v", err, c.want)
			}
			if err == nil {
				defer conn.Close()
				echoes(t, conn)
			} else if r := <-reported; r.Reason != c.want || r.Host != "node2" {
				t.Errorf("the gate reports %+v, want %v", r, c.want)
			}
		})
	}
}

// A client is listed only after it has noted that it waits, and not at all if it does not want to.
func TestClientsHaveNotedThatTheyWait(t *testing.T) {
	key := secret.DeriveKey(testToken, "job")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := New([]net.Listener{l}, &key, nil, Order{}, func(Rejection) {})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	d, err := NewDialer(&key, nil, "node2", Instance{1}.String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused := errors.New("this agent hosts")
	wait := func(id Instance) error {
		if id != g.ID() {
			t.Errorf("it waits for %v, want %v", id, g.ID())
		}
		time.Sleep(100 * time.Millisecond)
		if list := g.Clients(); len(list) > 0 || g.Passed() {
			t.Errorf("listed before it waits: %+v", list)
		}
		return refused
	}
	if _, _, err := d.DialAgent(ctx, addrOf(l.Addr()), wait); err != refused {
		t.Fatalf("the error is %v, want %v", err, refused)
	}
	refused = nil
	var dialing sync.WaitGroup
	defer dialing.Wait()
	defer cancel()
	dialing.Go(func() { d.DialAgent(ctx, addrOf(l.Addr()), wait) })
	limit := time.Now().Add(10 * time.Second)
	for len(g.Clients()) == 0 {
		if time.Now().After(limit) {
			t.Fatal("it is not listed although it waits")
		}
		time.Sleep(time.Millisecond)
	}
}

// When all agents have joined, members that connect again are admitted, others are not.
func TestFullGate(t *testing.T) {
	key := secret.DeriveKey(testToken, "job")
	l, addr := listenLocal(t, key, func(Rejection) {})
	echo(t, l)
	l.(*Gate).Full()
	if _, err := dialAs(t, Instance{1}.String(), key, addr); err != ErrFull {
		t.Errorf("error of an agent that searches for others: %v, want %v", err, ErrFull)
	}
	member, err := dialKey(t, key, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	echoes(t, member)
}

// None of these clients is admitted, and an admitted connection keeps working meanwhile.
func TestGateRejectsAttackers(t *testing.T) {
	k := secret.DeriveKey(testToken, "job")
	l, addr := listenLocal(t, k, func(Rejection) {})
	echo(t, l)
	member, err := dialKey(t, k, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()

	store, err := k.ServerTLS("")
	if err != nil {
		t.Fatal(err)
	}
	client, err := k.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	without, server, old := client.Clone(), client.Clone(), client.Clone()
	without.Certificates = nil
	server.Certificates = store.Certificates
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for name, cfg := range map[string]*tls.Config{
		"no certificate": without, "server certificate": server, "TLS 1.2": old,
	} {
		conn, err := tls.Dial("tcp", addr.String(), cfg)
		if err == nil {
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		if err == nil {
			t.Errorf("%s: admitted", name)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection is not closed: %v", name, err)
		}
	}
	for _, text := range []string{
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", protocol.Magic + " hello 0 x\n",
		string(make([]byte, 5000)),
	} {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		conn.Write([]byte(text))
		if b, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || len(b) > 100 {
			t.Errorf("%.10q: got %d bytes, %v", text, len(b), err)
		}
		conn.Close()
	}
	echoes(t, member)
}

// More silent connections than may be pending harm neither an admitted connection nor a new client
// at the same address.
func TestGateWithSilentConnections(t *testing.T) {
	k := secret.DeriveKey(testToken, "job")
	l, addr := listenLocal(t, k, func(Rejection) {})
	echo(t, l)
	member, err := dialKey(t, k, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	p := l.(*Gate).unauthenticated
	p.mu.Lock()
	p.max = 100
	p.mu.Unlock()
	for range p.max * 3 {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	echoes(t, member)
	late, err := dialKey(t, k, addr)
	if err != nil {
		t.Fatalf("a new client: %v", err)
	}
	defer late.Close()
	echoes(t, late)
}

// An agent's certificate is not accepted as the store's.
func TestDialRejectsAgentsCertificate(t *testing.T) {
	k := secret.DeriveKey(testToken, "job")
	client, err := k.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: client.Certificates, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); io.WriteString(conn, protocol.Magic+" ok\n") }()
		}
	}()
	if conn, err := dialKey(t, k, addrOf(l.Addr())); err == nil {
		conn.Close()
		t.Error("Dial accepts an agent's certificate")
	}
}
