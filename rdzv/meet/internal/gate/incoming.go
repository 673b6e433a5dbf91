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

// An incoming is a connection from its accept(2) on.
type incoming struct {
	net.Conn
	from netip.Addr

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
	n, err := s.Conn.Read(b)
	if err == io.EOF {
		s.atEnd.Store(true)
	}
	return n, err
}

// AtEnd tells whether the other side has closed the connection, and not only that of TLS: package
// presence asks.
func (s *incoming) AtEnd() bool { return s.atEnd.Load() }

// maxUnauthenticated is the maximum number of connections that have not passed the handshake. They
// use at most a quarter of the file descriptors that this process may have.
const maxUnauthenticated = 8192

// unauthenticated are the connections that have not passed the handshake. They are accepted at
// once, because the kernel's queue is the same for all clients. If there are too many, the oldest
// of the address with the most is closed: an agent needs little time for the handshake, so that it
// passes even if it has the address of an attacker.
type unauthenticated struct {
	max int

	mu     sync.Mutex
	byAddr map[netip.Addr][]*incoming // the oldest first
	count  int
}

func newUnauthenticated() *unauthenticated {
	u := &unauthenticated{max: maxUnauthenticated, byAddr: map[netip.Addr][]*incoming{}}
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		u.max = int(min(maxUnauthenticated, files.Cur/4))
	}
	return u
}

// add adds a new connection.
func (u *unauthenticated) add(conn net.Conn) *incoming {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := &incoming{Conn: conn, from: addrOf(conn.RemoteAddr()).Addr()}
	u.byAddr[s.from] = append(u.byAddr[s.from], s)
	if u.count++; u.count > u.max {
		u.drop()
	}
	return s
}

// remove removes a connection whose handshake has ended. It has no effect on one that drop has
// removed.
func (u *unauthenticated) remove(s *incoming) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.delete(s)
}

func (u *unauthenticated) delete(s *incoming) {
	list := u.byAddr[s.from]
	i := slices.Index(list, s)
	if i < 0 {
		return
	}
	u.count--
	if u.byAddr[s.from] = slices.Delete(list, i, i+1); len(list) == 1 {
		delete(u.byAddr, s.from)
	}
}

// shrink closes one connection, because there is no file descriptor left.
func (u *unauthenticated) shrink() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drop()
}

// drop closes the oldest connection of the address with the most.
func (u *unauthenticated) drop() {
	var most []*incoming
	for _, list := range u.byAddr {
		if len(list) > len(most) {
			most = list
		}
	}
	if len(most) > 0 {
		oldest := most[0]
		u.delete(oldest)
		oldest.Close()
	}
}
