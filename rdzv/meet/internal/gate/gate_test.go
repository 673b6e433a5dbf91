package gate

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"rdzv/rdzv/secret"
)

// listenLocal is a guarded listener of the job with that key.
func listenLocal(t *testing.T, k secret.Key, told func(Stranger)) (net.Listener, netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := New([]net.Listener{l}, &k, nil, told)
	if err != nil {
		t.Fatal(err)
	}
	g.Admit()
	t.Cleanup(func() { g.Close() })
	return g, addrOf(l.Addr())
}

// echo answers every byte that comes in, over every connection.
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
	d, err := NewDialer(&k, nil, "node2")
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
		t.Fatalf("a member that is in: %v", err)
	}
}

func TestGuardTellsOtherTokens(t *testing.T) {
	told := make(chan Stranger, 10)
	l, addr := listenLocal(t, secret.DeriveKey(testToken, "job"), func(s Stranger) { told <- s })
	echo(t, l)
	if _, err := dialKey(t, secret.DeriveKey([]byte("another token, 24 bytes."), "job"), addr); !errors.Is(err, ErrOtherToken) {
		t.Errorf("the client with another token learns: %v", err)
	}
	if s := <-told; !errors.Is(s.Why, ErrOtherToken) || s.Host != "node2" || s.Addr != addr.Addr() {
		t.Errorf("the server learns: %+v", s)
	}
	if _, err := dialKey(t, secret.DeriveKey(testToken, "job2"), addr); !errors.Is(err, ErrOtherJob) {
		t.Errorf("the client of another job learns: %v", err)
	}
	conn, err := dialKey(t, secret.DeriveKey(testToken, "job"), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	echoes(t, conn)
}

// What an attacker may send, and a member that is in all the while.
func TestGuardKeepsStrangersOut(t *testing.T) {
	k := secret.DeriveKey(testToken, "job")
	l, addr := listenLocal(t, k, func(Stranger) {})
	echo(t, l)
	member, err := dialKey(t, k, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()

	server, err := k.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	client, err := k.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	without, posing, old := client.Clone(), client.Clone(), client.Clone()
	without.Certificates = nil
	posing.Certificates = server.Certificates // the store's kind, not an agent's
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for name, cfg := range map[string]*tls.Config{"no certificate": without, "a server's certificate": posing, "TLS 1.2": old} {
		conn, err := tls.Dial("tcp", addr.String(), cfg)
		if err == nil {
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		if err == nil {
			t.Errorf("%s: let in", name)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection is not closed: %v", name, err)
		}
	}
	for _, text := range []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "rdzv1 hello 0 x\n", string(make([]byte, 5000))} {
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

// Silent connections, many more than there is room for, neither harm a member nor keep a new one
// out.
func TestGuardUnderSilence(t *testing.T) {
	k := secret.DeriveKey(testToken, "job")
	l, addr := listenLocal(t, k, func(Stranger) {})
	echo(t, l)
	member, err := dialKey(t, k, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	for range 3 * maxPending {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	echoes(t, member)
	late, err := dialKey(t, k, addr)
	if err != nil {
		t.Fatalf("a member that comes late: %v", err)
	}
	defer late.Close()
	echoes(t, late)
	if n := len(l.(*Gate).pending.conns); n > maxPending {
		t.Errorf("%d connections are pending", n)
	}
}

// The client's half: who poses as the store without the key, or with an agent's certificate, is not
// believed.
func TestDialRefusesImpostors(t *testing.T) {
	k := secret.DeriveKey(testToken, "job")
	client, err := k.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: client.Certificates, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}})
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
			go func() { defer conn.Close(); io.WriteString(conn, "rdzv1 ok\n") }()
		}
	}()
	if conn, err := dialKey(t, k, addrOf(l.Addr())); err == nil {
		conn.Close()
		t.Error("an agent's certificate serves as the store's")
	}
}
