package meet

import (
	"context"
	"fmt"
	"time"
)

// aloneAfter is how long a host by hand waits in silence for the first of the others.
const aloneAfter = 3 * time.Second

// sayAlone tells a user who waits how the other nodes can find this one.
func (j *joiner) sayAlone(ctx context.Context, m *Meeting, p *plan) {
	t := time.NewTimer(aloneAfter)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return
	case <-t.C:
	}
	if m.gate.Visited() {
		return
	}
	for _, line := range j.invitation(m, p) {
		j.say(line)
	}
}

// invitation is what to do if the other nodes do not find this one. The RDZV_JOIN line holds the
// job's key, which must not end up in a log file: it is for a terminal only.
func (j *joiner) invitation(m *Meeting, p *plan) []string {
	lines := []string{fmt.Sprintf("no other agent has connected after %s", aloneAfter)}
	if p.store {
		lines = append(lines, fmt.Sprintf("hint: if the other nodes cannot find this one, "+
			"start every node with --store %s", m.Addr.Addr()))
	}
	if j.terminal || m.Key == nil {
		lines = append(lines, "hint: put this before the command on a node that cannot find this one: "+m.JoinLine())
	}
	return lines
}
