package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/secret"
)

// A Meeting is this agent's access to the store that it has found or hosts. The agent must call
// Close when it ends.
type Meeting struct {
	Hosting bool             // this agent hosts the store
	Shared  bool             // the store is that of many jobs; no agent hosts it
	Key     *secret.Key      // nil with --insecure
	Addr    netip.AddrPort   // address of the store as used by this agent
	Addrs   []netip.AddrPort // all addresses on which the store listens
	// Own is the address of this host by which the job reaches the store. It is not valid if this
	// agent hosts the store, or if the store answers only over networks that Config.Net excludes.
	Own netip.Addr

	config  *Config
	id      gate.Instance
	gate    *gate.Gate // nil if another agent hosts
	dialer  *gate.Dialer
	again   func(context.Context) (*Meeting, error) // finds another store
	cleanup *cleanup                                // for Close
	unclaim func()                                  // releases the host; nil without a claim
	tasks   *tasks

	restarted atomic.Bool // see Restarted

	mu    sync.Mutex
	first net.Conn // connection of Meet, until Dial returns it
}

// Restarted tells whether a later call of Dial has found another run of a shared store.
func (m *Meeting) Restarted() bool { return m.restarted.Load() }

// errReplaced means that another store of the same job listens at the address of the store.
var errReplaced = errors.New("the store has ended, and another one uses its address")

// Dial returns a connection to the store, which is encrypted and authenticated and carries the
// store's own protocol. The first call returns the connection that Meet has made; later calls
// connect again, to the same run of the store only. In a new run of a shared store the agent finds
// that its lease is gone.
func (m *Meeting) Dial(ctx context.Context) (net.Conn, error) {
	m.mu.Lock()
	conn := m.first
	m.first = nil
	m.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	conn, greeting, err := m.dialer.Dial(ctx, m.Addr)
	if err == nil && greeting.ID != m.id {
		if m.restarted.Store(true); !m.Shared {
			conn.Close()
			err = errReplaced
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the store at %s: %w", m.Addr, err)
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

// Agreed means that all agents have joined: this agent no longer announces the store, and if it
// hosts it, does not admit agents that search for others by multicast. Somebody may send recorded
// beacons of this store while the same command starts again.
func (m *Meeting) Agreed() {
	m.tasks.end()
	if m.gate != nil {
		m.gate.Full()
	}
}

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
	conn, unclaim := m.first, m.unclaim
	m.first, m.unclaim = nil, nil
	m.mu.Unlock()
	m.tasks.end()
	if conn != nil {
		conn.Close()
	}
	if m.gate != nil {
		m.gate.Close()
	}
	if unclaim != nil {
		unclaim()
	}
}

// Format does not print the key.
func (m *Meeting) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "meeting {hosting %t, store %s}", m.Hosting, m.Addr)
}

// tasks runs the background goroutines of a store.
type tasks struct {
	ctx   context.Context
	stop  context.CancelFunc
	group sync.WaitGroup
}

func newTasks() *tasks {
	t := &tasks{}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// run calls f in a goroutine. The context of f ends when end is called.
func (t *tasks) run(f func(context.Context)) { t.group.Go(func() { f(t.ctx) }) }

// end stops all tasks and waits for them.
func (t *tasks) end() {
	t.stop()
	t.group.Wait()
}

// A cleanup contains functions to be called when the agent leaves, or has failed to meet the
// others. Functions are added only while the agent meets the others.
type cleanup []func()

func (c *cleanup) add(f func()) { *c = append(*c, f) }

// run calls the functions, the last one first. Only the first call of run has an effect.
func (c *cleanup) run() {
	funcs := *c
	*c = nil
	for _, f := range slices.Backward(funcs) {
		f()
	}
}

// pause waits for d, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reachTimeout limits the time for a connection to one address of the store. The store is running,
// so a reachable address answers quickly, and an unreachable one delays the job by this time.
const reachTimeout = 250 * time.Millisecond

// A Way is an address of the store that this agent can reach, and the agent's own address on such a
// connection.
type Way struct{ Store, Own netip.Addr }

// Reach connects to all addresses on which the store listens and returns those that this agent can
// reach over networks that Config.Net allows, in the host's order. On hosts with several networks,
// a connection to one address does not show that the others are reachable too. The result is nil
// on the store's own host.
func (m *Meeting) Reach(ctx context.Context) []Way {
	if m.Hosting {
		return nil
	}
	if own, err := m.config.ownAddrs([]netip.Addr{m.Addr.Addr()}); err != nil || len(own) > 0 {
		return nil
	}
	ways := make([]Way, len(m.Addrs))
	var group sync.WaitGroup
	for i, a := range m.Addrs {
		if a == m.Addr {
			ways[i] = Way{Store: a.Addr(), Own: m.Own}
			continue
		}
		group.Go(func() {
			if conn, own := m.reach(ctx, a); conn != nil {
				conn.Close()
				ways[i] = Way{Store: a.Addr(), Own: own}
			}
		})
	}
	group.Wait()
	ways = slices.DeleteFunc(ways, func(w Way) bool { return w == Way{} })
	// With address translation, the host does not know the address that this agent uses.
	if used := (Way{Store: m.Addr.Addr(), Own: m.Own}); !slices.Contains(ways, used) {
		ways = append(ways, used)
	}
	return ways
}
