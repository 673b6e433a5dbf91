package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/secret"
)

// A Meeting is the agent's way to the store that it has found or hosts. Close it at the very end.
type Meeting struct {
	Hosting bool             // this agent hosts the store
	Key     *secret.Key      // nil with --insecure
	Addr    netip.AddrPort   // of the store as seen from here
	Addrs   []netip.AddrPort // where the store listens

	session *session
	plan    *plan
	id      gate.Instance
	gate    *gate.Gate   // of the host
	dialer  *gate.Dialer // of the others; of the host once it dials itself

	// BetterHost is closed when, without a launcher, another agent turns out to host as well and has
	// the lower id: the two found each other too late. If the job can still move, move it, call
	// Redirect, and look Again. It may be closed at any time until Agreed.
	BetterHost <-chan struct{}

	betterHost chan struct{}
	rival      netip.AddrPort // the better host's address; set before betterHost is closed

	mu    sync.Mutex
	first net.Conn // the connection that Meet verified, until somebody takes it
	tasks sync.WaitGroup
	stop  context.CancelFunc
	last  func() // see onRelease
}

// ErrGone is what Dial says when the store that was found is not there any more, but another of the same job.
var ErrGone = errors.New("the store is gone, another is in its place")

// Dial gives a connection to the store, with the store's own protocol to follow: TLS is inside already, and both sides are verified.
// The first call gives the one that Meet verified; later ones connect anew, to the same run of the store.
func (m *Meeting) Dial(ctx context.Context) (net.Conn, error) {
	m.mu.Lock()
	conn := m.first
	m.first = nil
	m.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	d, err := m.dialing()
	if err != nil {
		return nil, err
	}
	conn, greeted, err := d.Dial(ctx, m.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the store at %s: %w", m.Addr, err)
	}
	if greeted.ID != m.id {
		conn.Close()
		return nil, fmt.Errorf("cannot connect to the store at %s: %w", m.Addr, ErrGone)
	}
	return conn, nil
}

func (m *Meeting) dialing() (*gate.Dialer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	if m.dialer == nil {
		m.dialer, err = gate.NewDialer(m.Key, m.plan.public, m.session.Host)
	}
	return m.dialer, err
}

// Again looks once more, for another store than this one, whose job is over. It closes this Meeting.
func (m *Meeting) Again(ctx context.Context) (*Meeting, error) {
	m.release()
	m.session.mu.Lock()
	m.session.exclude[m.id] = true
	m.session.mu.Unlock()
	return m.session.meet(ctx)
}

// JoinLine is the assignment that makes an agent on another node find this store, "RDZV_JOIN=ADDR:PORT/KEY". It holds the key.
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
		m.gate.SendTo(m.rival)
	default:
	}
}

// Agreed says that all are here: nobody needs to find this store any more, so beacons stop, and it will not move.
func (m *Meeting) Agreed() {
	m.mu.Lock()
	stop := m.stop
	m.stop = nil
	m.mu.Unlock()
	if stop != nil {
		stop()
	}
	m.tasks.Wait()
}

// aloneAfter is how long a host by hand waits in silence for the first of the others.
const aloneAfter = 3 * time.Second

// serve starts the store and lets in who waits at the gate. If it cannot, all is released.
func (m *Meeting) serve(ctx context.Context) error {
	started := false
	defer func() {
		if !started {
			m.release()
		}
	}()
	if err := m.session.host(ctx, m.gate); err != nil {
		return err
	}
	started = true
	m.gate.Admit()
	if m.session.byHand() {
		m.background(m.sayAlone)
	}
	if m.plan.announce {
		m.background(m.announce)
	}
	return nil
}

// background runs f until Close.
func (m *Meeting) background(f func(context.Context)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	if before := m.stop; before != nil {
		m.stop = func() { before(); cancel() }
	} else {
		m.stop = cancel
	}
	m.tasks.Go(func() { f(ctx) })
}

// sayAlone tells a user who waits how the other nodes can find this one.
func (m *Meeting) sayAlone(ctx context.Context) {
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
	for _, line := range m.invitation() {
		m.session.Say(line)
	}
}

// invitation is what to do if the other nodes do not find this one. The RDZV_JOIN line holds the
// job's key, which must not end up in a log file: it is for a terminal only.
func (m *Meeting) invitation() []string {
	lines := []string{fmt.Sprintf("no other agent has connected after %s", aloneAfter)}
	if m.session.Store == "" {
		lines = append(lines, fmt.Sprintf("hint: if the other nodes cannot find this one, "+
			"start every node with --store %s", m.Addr.Addr()))
	}
	if m.session.Terminal || m.Key == nil {
		lines = append(lines, "hint: put this before the command on a node that cannot find this one: "+m.JoinLine())
	}
	return lines
}

// Close ends everything that Meet left running. Connections that were given out live on, and so does the store. It must be the very last act
// of the agent: under Hydra it tells the launcher that this task is done, and a task that ends without that takes others with it.
func (m *Meeting) Close() {
	m.release()
	m.session.end()
}

// release lets go of all that belongs to this store.
func (m *Meeting) release() {
	m.mu.Lock()
	stop, conn := m.stop, m.first
	m.stop, m.first = nil, nil
	m.mu.Unlock()
	if stop != nil {
		stop()
	}
	if conn != nil {
		conn.Close()
	}
	if m.gate != nil {
		m.gate.Close()
	}
	m.tasks.Wait()
	m.mu.Lock()
	last := m.last
	m.last = nil
	m.mu.Unlock()
	if last != nil {
		last()
	}
}

// onRelease has f called when this store is let go of.
func (m *Meeting) onRelease(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = f
}

// Format names the store without its key.
func (m *Meeting) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "meeting {hosting %t, store %s}", m.Hosting, m.Addr)
}
