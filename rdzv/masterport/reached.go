package masterport

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"sync"

	"rdzv/internal/procfs"
	"rdzv/internal/procfs/nettcp"
)

// Serves tells whether the process pid, or a descendant of it, serves torch's store on MASTER_PORT:
// it listens there and is connected to that itself, as rank 0 is. Other programs use MASTER_PORT
// for servers that are not connected to themselves. It costs less than Reached.
func Serves(proc fs.FS, port int, pid int) bool {
	return procfs.FindDescendant(proc, pid, newSocketLookup(proc, port).serves) != 0
}

// Reached tells of each process whether it, or a descendant of it, listens on MASTER_PORT or is
// connected to it. One that is being connected is not: a firewall may drop its packets. The
// address may be any: a program may use another name of rank 0's node than MASTER_ADDR. It is also
// true if a process cannot be inspected because it is another user's, so that nobody is suspected
// without evidence.
func Reached(proc fs.FS, port int, pids []int) []bool {
	return newSocketLookup(proc, port).all(pids)
}

// socketLookup is one call of Serves or Reached. It reads each table of sockets once, and only if
// a process has sockets.
type socketLookup struct {
	proc                 fs.FS
	port                 uint16
	listening, connected func() inodes     // in this process's network namespace
	others               map[string]inodes // in other namespaces, by the name of the namespace
}

// inodes are sockets that have to do with MASTER_PORT.
type inodes map[uint64]bool

func newSocketLookup(proc fs.FS, port int) *socketLookup {
	l := &socketLookup{proc: proc, port: uint16(port), others: map[string]inodes{}}
	l.listening = sync.OnceValue(func() inodes { return l.ask(listening) })
	l.connected = sync.OnceValue(func() inodes { return l.ask(connected) })
	return l
}

// ask asks the kernel, which answers only if it has the module tcp_diag.
func (l *socketLookup) ask(kernel func(port uint16) (inodes, error)) inodes {
	if found, err := kernel(l.port); err == nil {
		return found
	}
	return nettcp.Inodes(l.proc, "self", l.port)
}

func (l *socketLookup) serves(pid int) bool {
	sockets, err := procfs.Sockets(l.proc, pid)
	return err == nil && l.has(pid, sockets, l.listening) && l.has(pid, sockets, l.connected)
}

func (l *socketLookup) all(pids []int) []bool {
	reached := make([]bool, len(pids))
	for i, pid := range pids {
		reached[i] = procfs.FindDescendant(l.proc, pid, l.reached) != 0
	}
	return reached
}

// reached is Reached for one process without its descendants.
func (l *socketLookup) reached(pid int) bool {
	sockets, err := procfs.Sockets(l.proc, pid)
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}
	return l.has(pid, sockets, l.listening, l.connected)
}

// has tells whether one of a process's sockets is in one of the tables of this network namespace,
// or in the table of the process's own.
func (l *socketLookup) has(pid int, sockets []uint64, tables ...func() inodes) bool {
	if len(sockets) == 0 {
		return false
	}
	dir := strconv.Itoa(pid)
	namespace, err := fs.ReadLink(l.proc, path.Join(dir, "ns/net"))
	if err != nil {
		return false // it has ended
	}
	if own, _ := fs.ReadLink(l.proc, "self/ns/net"); namespace != own {
		tables = []func() inodes{func() inodes { return l.other(namespace, dir) }}
	}
	return slices.ContainsFunc(tables, func(table func() inodes) bool {
		found := table()
		return slices.ContainsFunc(sockets, func(s uint64) bool { return found[s] })
	})
}

// other is the table of another network namespace, that of the process whose directory in /proc is
// dir.
func (l *socketLookup) other(namespace, dir string) inodes {
	if _, known := l.others[namespace]; !known {
		l.others[namespace] = nettcp.Inodes(l.proc, dir, l.port)
	}
	return l.others[namespace]
}
