package presence

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// patience is how long a test waits for an event that must happen.
const patience = 30 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// server is a registry that keeps which agents were lost, or have left.
type server struct {
	*Registry
	lost chan lost
	left chan string
}

type lost struct {
	id string
	Loss
}

func (s server) ended(id string, why *Loss) {
	if why == nil {
		s.left <- id
	} else {
		s.lost <- lost{id, *why}
	}
}

// serve runs the server of a registry on loopback and returns its address.
func serve(t *testing.T, generation string, timeout time.Duration) (server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server{NewRegistry(generation), make(chan lost, 100), make(chan string, 100)}
	g := grpc.NewServer(ServerOptions(timeout)...)
	s.Register(g, s.ended)
	var serving sync.WaitGroup
	serving.Go(func() { g.Serve(NewListener(l, timeout)) })
	t.Cleanup(func() { s.Close(); g.Stop(); serving.Wait() })
	return s, l.Addr().String()
}

type dialFunc = func(context.Context) (net.Conn, error)

// connect returns a gRPC connection whose silence is limited.
func connect(t *testing.T, timeout time.Duration, dial dialFunc) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///store",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			return LimitSilence(conn, timeout, 2*timeout), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// to returns a function that dials a TCP address.
func to(address string) dialFunc {
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
}

// agent is a stream whose channel lost is closed when the store is lost.
type agent struct {
	*Stream
	lost chan struct{}
}

func open(t *testing.T, conn *grpc.ClientConn, id string) agent {
	t.Helper()
	lost := make(chan struct{})
	a, err := Open(within(t), conn, id, func() { close(lost) })
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	t.Cleanup(a.Abandon)
	return agent{a, lost}
}

func wantLost(t *testing.T, s server, id string) (loss lost) {
	t.Helper()
	select {
	case loss = <-s.lost:
		if loss.id != id {
			t.Errorf("agent %q was reported lost, want %q", loss.id, id)
		}
	case <-within(t).Done():
		t.Fatalf("the loss of agent %q was not reported", id)
	}
	return loss
}

func wantEmpty(t *testing.T, s server) {
	t.Helper()
	if err := s.Empty(within(t)); err != nil {
		t.Error("the registry is not empty")
	}
}
