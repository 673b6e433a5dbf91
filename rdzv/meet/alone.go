package meet

import (
	"context"
	"time"
)

// aloneAfter is how long an agent without a launcher waits for the first other agent before it
// reports Alone.
const aloneAfter = 3 * time.Second

// reportAlone reports after aloneAfter how other nodes can find this one, unless another agent has
// connected or ctx has ended.
func (l *locator) reportAlone(ctx context.Context, m *Meeting) {
	if !pause(ctx, aloneAfter) || m.gate.Passed() {
		return
	}
	n := Alone{After: aloneAfter, JoinLine: m.JoinLine(), Secret: m.Key != nil}
	if l.config.Store == "" {
		n.Store = m.Addr.Addr()
	}
	l.config.Notify(n)
}
