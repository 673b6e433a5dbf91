package presence

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// On a machine that is very busy, coming back may take longer than the grace for
// it; then the agent is lost, as it should be, and the test tries again.
func TestAConnectionThatBreaksIsMadeAgain(t *testing.T) {
	for range 10 {
		if survives(t, 5) {
			return
		}
	}
	t.Error("no agent survived its connection's break")
}

// survives tells whether an agent comes back each time that its connection breaks.
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
	for i := range breaks {
		(<-wires).Close()
		if !comesBack(t, registry, a, i+2) {
			return false
		}
	}
	a.Leave(within(t))
	wantEmpty(t, registry)
	select {
	case id := <-registry.Lost():
		t.Errorf("%q was lost, and then left", id)
	default:
	}
	return true
}

// comesBack waits until n streams have come in, or the agent is lost.
func comesBack(t *testing.T, r *Registry, a *Stream, n int) bool {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := within(t); ; {
		r.mu.Lock()
		serial := r.serial
		r.mu.Unlock()
		if serial >= n {
			return true
		}
		select {
		case <-tick.C:
		case <-a.Lost():
			return false
		case <-r.Lost():
			return false
		case <-ctx.Done():
			t.Fatalf("%d streams came in, not %d, and nobody was lost", serial, n)
		}
	}
}

func TestAnotherStoreIsNotTakenForTheFirst(t *testing.T) {
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
	case <-a.Lost():
	case <-within(t).Done():
		t.Fatal("the other store was taken for the first")
	}
	open(t, connect(t, DefaultTimeout, to(second)), "b").Abandon()
	wantLost(t, other, "b") // and not a, which was never its own
}
