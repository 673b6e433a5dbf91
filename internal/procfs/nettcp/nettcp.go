package nettcp

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"strconv"
	"strings"
)

// Remotes are the other ends of this host's established TCP connections of a daemon with that port,
// as this process may see them. A daemon has its connections by one protocol, and the other file
// costs as much to read.
func Remotes(proc fs.FS, daemon uint16) (list []netip.Addr) {
	for _, name := range []string{"self/net/tcp", "self/net/tcp6"} {
		f, err := proc.Open(name)
		if err != nil {
			continue
		}
		for _, pair := range read(f) {
			if pair.remote.Port() == daemon || pair.local.Port() == daemon {
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

func read(r io.Reader) []connection {
	var list []connection
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if pair, up, err := parseLine(lines.Text()); err == nil && up {
			list = append(list, pair)
		}
	}
	return list
}

// A connection is one established TCP connection of this host.
type connection struct{ local, remote netip.AddrPort }

var errLine = errors.New("not a line of /proc/net/tcp")

const established = "01"

// parseLine reads one line of /proc/net/tcp or tcp6 (proc(5)): addresses as words of 32 bits in
// this machine's byte order, in hex.
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
