package rdzv

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// A store that is silent for the peer timeout does not learn that this agent has closed the
// connection: it would take the agent for dead while its workers still run.
func TestSilentStoreIsNotTold(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
	const peerTimeout = 100 * time.Millisecond
	client, err := Dial(dial, peerTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = client.Get(ctx, "key") }() // connects, again and again
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := l.Accept() // when the agent has given up the first connection
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := first.SetReadDeadline(time.Now().Add(5 * peerTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, first); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection ended with %v", err)
	}
}
