package presence

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// On a very busy machine reconnecting may take longer than reconnectGrace. The agent is then
// correctly lost, and the test tries again.
func TestBrokenConnectionIsReopened(t *testing.T) {
	for range 10 {
		if survives(t, 5) {
			return
		}
	}
	t.Error("no agent reconnected after its connection broke, in 10 tries")
}

// survives reports whether an agent reconnects each time that its connection breaks.
func survives(t *testing.T, breaks int) bool {
	registry, address := serve(t, "1", DefaultTimeout)
	wires := make(chan net.Conn, 10)
	a := open(t, connect(t, DefaultTimeout, func(ctx context.Context) (net.Conn, error) {
		conn, err := to(address)(ctx)
		if err == nil {
			wires <- conn
		}
		return conn, err
	}), "a")
	for range breaks {
		broken := a.stream()
		(<-wires).Close()
		if !reconnects(t, registry, a, broken) {
			return false
		}
	}
	a.Leave(within(t))
	wantEmpty(t, registry)
	select {
	case loss := <-registry.lost:
		t.Errorf("agent %q was reported lost before it left", loss.id)
	default:
	}
	return true
}

// stream returns the agent's current stream.
func (a agent) stream() grpc.ClientStream {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current
}

// reconnects waits until the agent has another stream than the broken one, or is lost. Its goodbye
// is then sent on the new stream.
func reconnects(t *testing.T, r server, a agent, broken grpc.ClientStream) bool {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := within(t); ; {
		if a.stream() != broken {
			return true
		}
		select {
		case <-tick.C:
		case <-a.lost:
			return false
		case <-r.lost:
			return false
		case <-ctx.Done():
			t.Fatal("the agent has no new stream, and no loss was reported")
		}
	}
}

func TestAnotherStoreIsNotAccepted(t *testing.T) {
	_, first := serve(t, "1", DefaultTimeout)
	other, second := serve(t, "2", DefaultTimeout)
	var mu sync.Mutex
	address, wires := first, []net.Conn(nil)
	a := open(t, connect(t, DefaultTimeout, func(ctx context.Context) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		conn, err := to(address)(ctx)
		wires = append(wires, conn)
		return conn, err
	}), "a")
	mu.Lock()
	address = second
	wires[0].Close()
	mu.Unlock()
	select {
	case <-a.lost:
	case <-within(t).Done():
		t.Fatal("the agent did not reject the other store")
	}
	open(t, connect(t, DefaultTimeout, to(second)), "b").Abandon()
	wantLost(t, other, "b") // not a, which belongs to the first store
}
