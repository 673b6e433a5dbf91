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
	t       *testing.T
	address string
	frozen  chan struct{}
	oneWay  bool // it still forwards what the client sends, and the end of the connection
}

func (w *wire) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	far, err := to(w.address)(ctx)
	if err != nil {
		return nil, err
	}
	w.t.Cleanup(func() { theirs.Close() }) // earlier than the client, which lets it linger
	go w.forward(theirs, far, true)
	go w.forward(far, theirs, !w.oneWay)
	return ours, nil
}

// forward copies bytes until the connection ends or is frozen. Frozen, both ends stay open.
func (w *wire) forward(to, from net.Conn, freezes bool) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if freezes && w.isFrozen() {
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
	w := &wire{t: t, address: address, frozen: make(chan struct{})}
	second := &wire{t: t, address: address, frozen: make(chan struct{})}
	frozen := open(t, connect(t, timeout, w.dial), "frozen")
	open(t, connect(t, timeout, second.dial), "frozen-second")
	healthy := open(t, connect(t, timeout, to(address)), "healthy")
	began := time.Now()
	close(w.frozen)
	if loss := wantLost(t, registry, "frozen"); loss.Ended || loss.After != timeout {
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

// An agent that receives nothing any more takes itself for lost, and then needs time to stop its
// workers. The server, which still receives what the agent sends, must not take the end of the
// connection for the end of the agent.
func TestAgentThatHearsNothingIsLostBySilence(t *testing.T) {
	t.Parallel()
	const timeout = MinTimeout
	registry, address := serve(t, "1", timeout)
	w := &wire{t: t, address: address, frozen: make(chan struct{}), oneWay: true}
	deaf := open(t, connect(t, timeout, w.dial), "deaf")
	began := time.Now()
	deaf.Renew(timeout/10, func() time.Duration { return time.Since(began) }, func(time.Duration) {})
	close(w.frozen)
	if loss := wantLost(t, registry, "deaf"); loss.Ended || loss.After != timeout {
		t.Errorf("%+v, want one after a silence of %v", loss, timeout)
	}
	select {
	case <-deaf.lost:
	default:
		t.Error("the agent did not detect the loss of the store before the server did")
	}
}
