// Package nettcp reads /proc/net/tcp and /proc/net/tcp6: the TCP sockets of a network namespace.
//
// It opens no connection, and does not find out which process owns one.
package nettcp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"path"
	"strconv"
	"strings"
)

// Remotes returns the remote addresses of this host's established TCP connections that have the
// given port at either end. It reads the table of IPv6 only if that of IPv4 has none: a daemon uses
// one of the two, and reading a table is expensive.
func Remotes(proc fs.FS, port uint16) (list []netip.Addr) {
	for _, name := range []string{"self/net/tcp", "self/net/tcp6"} {
		f, err := proc.Open(name)
		if err != nil {
			continue
		}
		for _, pair := range read(f) {
			if pair.remote.Port() == port || pair.local.Port() == port {
				list = append(list, pair.remote.Addr())
			}
		}
		f.Close()
		if len(list) > 0 {
			break
		}
	}
	return list
}

// Inodes returns the inodes of the TCP sockets of the network namespace of a process, such as "71"
// or "self", that listen on a port or are connected to it, or being connected, at whatever address.
func Inodes(proc fs.FS, process string, port uint16) map[uint64]bool {
	inodes := map[uint64]bool{}
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := proc.Open(path.Join(process, "net", name))
		if err != nil {
			continue
		}
		addInodes(inodes, f, port)
		f.Close()
	}
	return inodes
}

// Peers returns the remote addresses of the TCP connections of the network namespace of a process,
// such as "71", by the inodes of their sockets.
func Peers(proc fs.FS, process string) map[uint64]netip.AddrPort {
	peers := map[uint64]netip.AddrPort{}
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := proc.Open(path.Join(process, "net", name))
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			words := strings.Fields(lines.Text())
			pair, _, err := parseLine(lines.Text())
			if err != nil || len(words) < 10 || words[3] == listening {
				continue
			}
			if inode, err := strconv.ParseUint(words[9], 10, 64); err == nil && inode != 0 {
				peers[inode] = pair.remote
			}
		}
		f.Close()
	}
	return peers
}

// addInodes adds those of a table. Most lines are of other ports: it does not parse them.
func addInodes(inodes map[uint64]bool, r io.Reader, port uint16) {
	end := fmt.Appendf(nil, ":%04X ", port)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if !bytes.Contains(lines.Bytes(), end) {
			continue
		}
		words := strings.Fields(lines.Text())
		pair, _, err := parseLine(lines.Text())
		if err != nil || len(words) < 10 {
			continue
		}
		listens := words[3] == listening && pair.local.Port() == port
		inode, err := strconv.ParseUint(words[9], 10, 64)
		connects := words[3] != connecting && pair.remote.Port() == port
		if err == nil && inode != 0 && (listens || connects) {
			inodes[inode] = true
		}
	}
}

// read returns the established connections of a table. It ignores malformed lines.
func read(r io.Reader) []connection {
	var list []connection
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if pair, up, err := parseLine(lines.Text()); err == nil && up {
			list = append(list, pair)
		}
	}
	return list
}

// A connection is one TCP connection of this host.
type connection struct{ local, remote netip.AddrPort }

var errLine = errors.New("malformed line of /proc/net/tcp")

// The states TCP_ESTABLISHED, TCP_SYN_SENT and TCP_LISTEN.
const (
	established = "01"
	connecting  = "02"
	listening   = "0A"
)

// parseLine reads one line of /proc/net/tcp or tcp6 (proc(5)), in which addresses are 32-bit words
// in hexadecimal and in the byte order of this machine.
func parseLine(line string) (pair connection, up bool, err error) {
	words := strings.Fields(line)
	if len(words) < 4 {
		return connection{}, false, errLine
	}
	local, err1 := parseAddr(words[1])
	remote, err2 := parseAddr(words[2])
	if err1 != nil || err2 != nil {
		return connection{}, false, errLine
	}
	return connection{local, remote}, words[3] == established, nil
}

func parseAddr(text string) (netip.AddrPort, error) {
	digits, hexport, ok := strings.Cut(text, ":")
	b, err := hex.DecodeString(digits)
	port, err2 := strconv.ParseUint(hexport, 16, 16)
	if !ok || err != nil || err2 != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, errLine
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(port)), nil
}
