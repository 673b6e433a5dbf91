package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
)

// The health command decides whether this node takes part in an attempt. One agent of each node
// runs it, while the others join. If it fails the node is lost to the job: a spare takes its place,
// or the attempt ends for that reason.

// health runs a health command.
type health struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid when done is closed
}

// checkHealth begins to run the health command; nil if there is none to run.
func (l *Local) checkHealth() *health {
	c := l.Config
	if c.HealthCmd == "" || c.Check != nil || !l.FirstOfNode() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.HealthTimeout)
	h := &health{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		_, h.err = runHealth(ctx, c.HealthTimeout, c.HealthCmd, c.Environ)
	}()
	return h
}

// stop ends the command and waits for its end.
func (h *health) stop() {
	if h != nil {
		h.cancel()
		<-h.done
	}
}

// healthCommand is what messages call it.
const healthCommand = "health command"

// runHealth runs a command of /bin/sh within a limit, and returns the last line of its output.
func runHealth(
	ctx context.Context, limit time.Duration, command string, environ []string,
) (line string, err error) {
	return runLimited(ctx, limit, healthCommand, environ, "/bin/sh", "-c", command)
}

// runLimited runs a command within a limit. The error has the name.
func runLimited(
	ctx context.Context, limit time.Duration, name string, environ []string, argv ...string,
) (line string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	line, err = lastLine(ctx, environ, argv...)
	if err != nil {
		err = fmt.Errorf("%s failed: %w", name, err)
	}
	return strings.TrimSpace(line), err
}

// awaitHealth waits for the result of the health command, until the attempt ends. It is false if
// this node does not take part: the attempt has ended then.
func (m *membership) awaitHealth() bool {
	h, ended := m.health, m.session.Context()
	if h == nil || m.world.Seat.Spare {
		return true
	}
	select {
	case <-h.done:
	case <-ended.Done():
		h.stop()
		return true
	}
	if h.err == nil {
		return true
	}
	seat := m.world.Seat
	text := fmt.Sprintf("%s (rank %d) cannot take part: %v", host.Name(), seat.Rank, h.err)
	final := m.conn.hosting() // nobody can take the place of the store
	m.write(func(ctx context.Context) error { return m.session.ReportLoss(ctx, text, final) })
	<-ended.Done()
	return false
}

// leavesUnhealthy tells whether this agent vanishes from the job, so that another one can take its
// place, because the attempt has ended for what awaitHealth has reported.
func (m *membership) leavesUnhealthy() bool {
	v := m.session.Verdict()
	own := v != nil && v.Kind == rdzv.Lost && v.By == m.self.ID
	return own && m.mayRestart(v)
}
