package presence

import (
	"context"
	"net"
	"testing"
	"time"
)

// A wire is a connection that a test can freeze: it stays open and forwards nothing, as if the host
// at the other end had been disconnected.
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
	go w.forward(theirs, far)
	go w.forward(far, theirs)
	return ours, nil
}

// forward copies bytes until the connection ends or is frozen. Frozen, both ends stay open.
func (w *wire) forward(to, from net.Conn) {
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

func TestFrozenPeerIsDetectedAtBothEnds(t *testing.T) {
	t.Parallel()
	const timeout = MinTimeout
	registry, address := serve(t, "1", timeout)
	w := &wire{address: address, frozen: make(chan struct{})}
	second := &wire{address: address, frozen: make(chan struct{})}
	frozen := open(t, connect(t, timeout, w.dial), "frozen")
	open(t, connect(t, timeout, second.dial), "frozen-second")
	healthy := open(t, connect(t, timeout, to(address)), "healthy")
	began := time.Now()
	close(w.frozen)
	if loss := wantLost(t, registry, "frozen"); !loss.Silent || loss.After != timeout {
		t.Errorf("%+v, want one after a silence of %v", loss, timeout)
	}
	select {
	case <-frozen.lost:
	case <-within(t).Done():
		t.Fatal("the agent did not detect the loss of the store")
	}
	// The last ping before the freeze may be up to a ping interval old.
	if took := time.Since(began); took < timeout/2 {
		t.Errorf("detected after %v, want about %v", took, timeout)
	}
	close(second.frozen)
	// By now only pings have kept the second connection alive, for longer than the timeout.
	wantLost(t, registry, "frozen-second")
	select {
	case <-healthy.lost:
		t.Error("the agent with a working connection lost its store")
	default:
	}
	healthy.Leave(within(t))
}
