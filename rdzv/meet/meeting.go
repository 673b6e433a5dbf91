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

// A Meeting is this agent's access to the store that it has found or hosts. The agent must call
// Close when it ends.
type Meeting struct {
	Hosting bool             // this agent hosts the store
	Key     *secret.Key      // nil with --insecure
	Addr    netip.AddrPort   // address of the store as used by this agent
	Addrs   []netip.AddrPort // all addresses on which the store listens

	// BetterHost is closed if this agent hosts without a launcher and has found another host with a
	// lower id, because the two started without receiving each other's beacons. If the job can
	// still move to that host, the agent should call Redirect and then Again. It may be closed at
	// any time until Agreed returns.
	BetterHost <-chan struct{}

	betterHost chan struct{}
	betterAddr netip.AddrPort // of the better host; set before betterHost is closed

	config  *Config
	id      gate.Instance
	gate    *gate.Gate // nil if another agent hosts
	dialer  *gate.Dialer
	again   func(context.Context) (*Meeting, error) // finds another store
	cleanup *cleanup                                // for Close
	unlock  func()                                  // releases the host lock; nil if there is none
	tasks   tasks

	mu    sync.Mutex
	first net.Conn // connection of Meet, until Dial returns it
}

// errReplaced means that another store of the same job listens at the address of the store.
var errReplaced = errors.New("the store has ended, and another one uses its address")

// Dial returns a connection to the store, which is encrypted and authenticated and carries the
// store's own protocol. The first call returns the connection that Meet has made; later calls
// connect again, to the same run of the store only.
func (m *Meeting) Dial(ctx context.Context) (net.Conn, error) {
	m.mu.Lock()
	conn := m.first
	m.first = nil
	m.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	conn, greeting, err := m.dialer.Dial(ctx, m.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the store at %s: %w", m.Addr, err)
	}
	if greeting.ID != m.id {
		conn.Close()
		return nil, fmt.Errorf("cannot connect to the store at %s: %w", m.Addr, errReplaced)
	}
	return conn, nil
}

// Again releases this store, whose job has ended, and meets the other agents at another store, as
// Meet does.
func (m *Meeting) Again(ctx context.Context) (*Meeting, error) {
	m.release()
	return m.again(ctx)
}

// JoinLine returns the variable assignment with which an agent on another node finds this store:
// "RDZV_JOIN=ADDR:PORT/KEY". It contains the job key.
func (m *Meeting) JoinLine() string {
	if m.Key == nil {
		return "RDZV_JOIN=" + m.Addr.String()
	}
	return "RDZV_JOIN=" + m.Addr.String() + "/" + m.Key.Reveal()
}

// Redirect directs agents that connect from now on to the better host. Until then they are
// admitted, so that members whose connection breaks can reconnect if the job does not move. Without
// a better host it has no effect.
func (m *Meeting) Redirect() {
	select {
	case <-m.betterHost:
		m.gate.Redirect(m.betterAddr)
	default:
	}
}

// Agreed means that all agents have joined: this store sends no more beacons, and BetterHost is no
// longer closed.
func (m *Meeting) Agreed() { m.tasks.end() }

// Close ends everything that Meet has left running. It does not close connections that Dial or the
// listener has returned, nor the store. It must be called when the agent ends and not before: under
// Hydra it sends finalize, after which the launcher treats this task as ended, and a task that ends
// without it makes Hydra kill the other tasks.
func (m *Meeting) Close() {
	m.release()
	m.cleanup.run()
}

// release closes everything that belongs to this store.
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

// Format does not print the key.
func (m *Meeting) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "meeting {hosting %t, store %s}", m.Hosting, m.Addr)
}
