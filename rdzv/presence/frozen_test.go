package presence

import (
	"context"
	"net"
	"testing"
	"time"
)

// wire is a connection that a test can freeze: it stays open and passes nothing
// on, as when the host at the other end has been unplugged.
type wire struct {
	address string
	frozen  chan struct{}
}

func (w *wire) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	far, err := to(w.address)(ctx)
	if err != nil {
		return nil, err
	}
	go w.pass(theirs, far)
	go w.pass(far, theirs)
	return ours, nil
}

// pass passes on what comes until it ends or is frozen; then what it has is kept
// open, as it stands.
func (w *wire) pass(to, from net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if w.isFrozen() {
			return
		}
		if n > 0 {
			to.Write(b[:n])
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

func (w *wire) isFrozen() bool {
	select {
	case <-w.frozen:
		return true
	default:
		return false
	}
}

func TestAFrozenPeerIsNoticedAtBothEnds(t *testing.T) {
	t.Parallel()
	const timeout = MinTimeout
	registry, address := serve(t, "1", timeout)
	w := &wire{address: address, frozen: make(chan struct{})}
	later := &wire{address: address, frozen: make(chan struct{})}
	frozen := open(t, connect(t, timeout, w.dial), "frozen")
	open(t, connect(t, timeout, later.dial), "frozen-later")
	well := open(t, connect(t, timeout, to(address)), "well")
	began := time.Now()
	close(w.frozen)
	wantLost(t, registry, "frozen")
	select {
	case <-frozen.Lost():
	case <-within(t).Done():
		t.Fatal("the agent did not notice")
	}
	// Another ping may come after it froze, none may have come for a while before it.
	if took := time.Since(began); took < timeout/2 {
		t.Errorf("noticed after %v, want about %v", took, timeout)
	}
	close(later.frozen)
	wantLost(t, registry, "frozen-later") // by then pings alone have kept the other for longer than the timeout
	select {
	case <-well.Lost():
		t.Error("an agent that is well lost its store")
	default:
	}
	well.Leave(within(t))
}
