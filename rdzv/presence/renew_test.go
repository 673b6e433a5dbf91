package presence

import (
	"sync/atomic"
	"testing"
	"time"
)

// The renewals of an agent are answered, with the time at which they were sent, until the agent is
// disconnected. Its loss is silent then. That of an agent whose connection is closed is not.
func TestRenew(t *testing.T) {
	const timeout = MinTimeout
	registry, address := serve(t, "1", timeout)
	w := &wire{t: t, address: address, frozen: make(chan struct{})}
	a := open(t, connect(t, timeout, w.dial), "a")
	began := time.Now()
	now := func() time.Duration { return time.Since(began) }
	answered := make(chan time.Duration, 100)
	var last atomic.Int64
	renewed := func(sent time.Duration) {
		last.Store(int64(sent))
		answered <- sent
	}
	a.Renew(timeout/10, now, renewed)
	a.Renew(timeout/10, now, func(time.Duration) { t.Error("the second call has an effect") })
	for before := time.Duration(-1); before < timeout/2; {
		select {
		case sent := <-answered:
			if sent <= before || sent > now() {
				t.Errorf("a renewal was sent at %v after one at %v", sent, before)
			}
			before = sent
		case <-within(t).Done():
			t.Fatal("a renewal was not answered")
		}
	}
	close(w.frozen)
	select {
	case loss := <-registry.lost:
		if loss.id != "a" || loss.Ended || loss.After != timeout {
			t.Errorf("%+v was reported", loss)
		}
	case <-within(t).Done():
		t.Fatal("the loss was not reported")
	}
	if since := now() - time.Duration(last.Load()); since < timeout {
		t.Errorf("the agent was lost %v after a renewal that was answered", since)
	}
	b := open(t, connect(t, timeout, to(address)), "b")
	b.Renew(timeout/10, now, func(time.Duration) {})
	b.Abandon()
	if loss := <-registry.lost; loss != (lost{id: "b"}) {
		t.Errorf("%+v was reported", loss)
	}
	c := open(t, connect(t, timeout, to(address)), "c")
	c.Renew(timeout/10, now, func(time.Duration) {})
	c.Leave(within(t))
	c.Renew(timeout/10, now, func(time.Duration) {}) // has no effect
	wantEmpty(t, registry)
}
