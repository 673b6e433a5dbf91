package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/secret"
)

// A Meeting is the agent's way to the store that it has found or hosts. Close it at the very end.
type Meeting struct {
	Hosting bool             // this agent hosts the store
	Key     *secret.Key      // nil with --insecure
	Addr    netip.AddrPort   // of the store as seen from here
	Addrs   []netip.AddrPort // where the store listens

	config *Config
	id     gate.Instance
	gate   *gate.Gate // of the host
	dialer *gate.Dialer
	again  func(context.Context) (*Meeting, error) // looks for another store
	end    func()                                  // what to do when the agent leaves
	unlock func()                                  // what to do when this store is let go of; may be nil

	// BetterHost is closed when, without a launcher, another agent turns out to host as well and
	// has the lower id: the two found each other too late. If the job can still move, move it, call
	// Redirect, and look Again. It may be closed at any time until Agreed.
	BetterHost <-chan struct{}

	betterHost chan struct{}
	rival      netip.AddrPort // the better host's address; set before betterHost is closed

	mu    sync.Mutex
	first net.Conn // the connection that Meet verified, until somebody takes it
	tasks tasks
}

// errGone is what Dial says when the store that was found is not there any more, but another of the
// same job.
var errGone = errors.New("the store has ended and another one uses its address")

// Dial gives a connection to the store, with the store's own protocol to follow: TLS is inside
// already, and both sides are verified. The first call gives the one that Meet verified; later ones
// connect anew, to the same run of the store.
func (m *Meeting) Dial(ctx context.Context) (net.Conn, error) {
	m.mu.Lock()
	conn := m.first
	m.first = nil
	m.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	conn, greeted, err := m.dialer.Dial(ctx, m.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the store at %s: %w", m.Addr, err)
	}
	if greeted.ID != m.id {
		conn.Close()
		return nil, fmt.Errorf("cannot connect to the store at %s: %w", m.Addr, errGone)
	}
	return conn, nil
}

// Again looks once more, for another store than this one, whose job is over. It closes this
// Meeting.
func (m *Meeting) Again(ctx context.Context) (*Meeting, error) {
	m.release()
	return m.again(ctx)
}

// JoinLine is the assignment that makes an agent on another node find this store,
// "RDZV_JOIN=ADDR:PORT/KEY". It holds the key.
func (m *Meeting) JoinLine() string {
	if m.Key == nil {
		return "RDZV_JOIN=" + m.Addr.String()
	}
	return "RDZV_JOIN=" + m.Addr.String() + "/" + m.Key.Reveal()
}

// Redirect sends agents that connect from now on to the better host. Until it is called they are
// let in as before, so that a job which does not move keeps members whose connection breaks.
// It does nothing while there is no better host.
func (m *Meeting) Redirect() {
	select {
	case <-m.betterHost:
		m.gate.Redirect(m.rival)
	default:
	}
}

// Agreed says that all are here: nobody needs to find this store any more, so beacons stop, and it
// will not move.
func (m *Meeting) Agreed() { m.tasks.end() }

// Close ends everything that Meet left running. Connections that were given out live on, and so
// does the store. It must be the very last act of the agent: under Hydra it tells the launcher that
// this task is done, and a task that ends without that takes others with it.
func (m *Meeting) Close() {
	m.release()
	m.end()
}

// release lets go of all that belongs to this store.
func (m *Meeting) release() {
	m.mu.Lock()
	conn, unlock := m.first, m.unlock
	m.first, m.unlock = nil, nil
	m.mu.Unlock()
	m.tasks.end()
	if conn != nil {
		conn.Close()
	}
	if m.gate != nil {
		m.gate.Close()
	}
	if unlock != nil {
		unlock()
	}
}

// Format names the store without its key.
func (m *Meeting) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "meeting {hosting %t, store %s}", m.Hosting, m.Addr)
}
