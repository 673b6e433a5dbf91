package gate

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// maxPending is the maximum number of connections that have not proved that they have the key. They
// use at most a quarter of the file descriptors that this process may have.
const maxPending = 8192

// The places limit how many handshakes are computed at a time, separately for clients that have
// sent a proof of the key and for others. Other clients are agents with a different key, which the
// handshake tells so, or attackers.
const (
	provenPlaces = 256
	otherPlaces  = 64
)

// pending contains the connections that have not proved that they have the key. They are accepted
// at once, because the kernel's queue is the same for all clients. If there are too many, the
// oldest of the address with the most is closed. An agent needs little time to send its proof, so
// that it succeeds even if it has the address of an attacker.
type pending struct {
	max    int
	proven chan struct{} // contains an element for each place that is taken

	mu     sync.Mutex
	groups map[netip.Addr][]*incoming // the oldest first
	count  int
	others int // places that are taken
	closed bool
}

// An incoming is a connection from its accept(2) on.
type incoming struct {
	net.Conn
	hello []byte // what was read from it, and not by Read

	from   netip.Addr
	parked bool // it waits for one of the other places; nothing reads from it

	public  string // public name of the job that the client has named
	host    string // the name that the client gives its host, not verified
	id      string // that it gives itself, see NewDialer; verified after the handshake
	version int    // of the client's protocol; verified after the handshake
	closed  atomic.Bool
	atEnd   atomic.Bool // Read has returned end of file
}

func (s *incoming) Close() error {
	s.closed.Store(true)
	return s.Conn.Close()
}

func (s *incoming) Read(b []byte) (int, error) {
	if len(s.hello) == 0 {
		n, err := s.Conn.Read(b)
		if err == io.EOF {
			s.atEnd.Store(true)
		}
		return n, err
	}
	n := copy(b, s.hello)
	s.hello = s.hello[n:]
	return n, nil
}

// AtEnd tells whether the other side has closed the connection, and not only that of TLS: package
// presence asks.
func (s *incoming) AtEnd() bool { return s.atEnd.Load() }

func newPending() *pending {
	p := &pending{
		max: maxPending, groups: map[netip.Addr][]*incoming{},
		proven: make(chan struct{}, provenPlaces),
	}
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		p.max = int(min(maxPending, files.Cur/4))
	}
	return p
}

// add adds a new connection.
func (p *pending) add(conn net.Conn) *incoming {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &incoming{Conn: conn, from: addrOf(conn.RemoteAddr()).Addr()}
	if p.closed {
		s.Close()
		return s
	}
	p.groups[s.from] = append(p.groups[s.from], s)
	p.count++
	if p.count > p.max {
		p.drop()
	}
	return s
}

// remove removes a connection that has sent a proof, or whose handshake has ended. It has no effect
// on a connection that drop has removed.
func (p *pending) remove(s *incoming) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.groups[s.from], s); i >= 0 {
		p.delete(s.from, i)
	}
}

func (p *pending) delete(from netip.Addr, i int) {
	group := slices.Delete(p.groups[from], i, i+1)
	p.groups[from] = group
	if len(group) == 0 {
		delete(p.groups, from)
	}
	p.count--
}

// shrink closes one connection, because there is no file descriptor left.
func (p *pending) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop()
}

// drop closes the oldest connection of the largest group.
func (p *pending) drop() {
	var largest []*incoming
	for _, group := range p.groups {
		if len(group) > len(largest) {
			largest = group
		}
	}
	if len(largest) > 0 {
		oldest := largest[0]
		p.delete(oldest.from, 0)
		oldest.Close()
	}
}

// close closes all connections.
func (p *pending) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for p.count > 0 {
		p.drop()
	}
}

// enter takes one of the other places for s, or parks it.
func (p *pending) enter(s *incoming) (entered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.others == otherPlaces {
		s.parked = true
		return false
	}
	p.others++
	return true
}

// leave passes the place of a connection whose handshake has ended to the newest parked connection
// of any address, which it returns; nil if there is none.
func (p *pending) leave() *incoming {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, group := range p.groups {
		for _, s := range slices.Backward(group) {
			if s.parked {
				s.parked = false
				return s
			}
		}
	}
	p.others--
	return nil
}
