package meet

import (
	"context"
	"time"
)

// aloneAfter is how long a host by hand waits in silence for the first of the others.
const aloneAfter = 3 * time.Second

// alone tells a user who waits how the other nodes can find this one.
func alone(ctx context.Context, m *Meeting, p *plan, notify func(Notice)) {
	t := time.NewTimer(aloneAfter)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return
	case <-t.C:
	}
	if m.gate.Passed() {
		return
	}
	n := Alone{After: aloneAfter, JoinLine: m.JoinLine(), Secret: m.Key != nil}
	if p.store {
		n.Store = m.Addr.Addr()
	}
	notify(n)
}
