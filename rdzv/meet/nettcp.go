package meet

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

// A tcpPair is one established TCP connection of this host.
type tcpPair struct{ local, remote netip.AddrPort }

var errNetTCP = errors.New("not a line of /proc/net/tcp")

const established = "01"

// parseNetTCPLine reads one line of /proc/net/tcp or tcp6 (proc(5)): addresses as words of 32 bits in this machine's byte order, in hex.
func parseNetTCPLine(line string) (pair tcpPair, up bool, err error) {
	words := strings.Fields(line)
	if len(words) < 4 {
		return tcpPair{}, false, errNetTCP
	}
	local, err1 := parseNetTCPAddr(words[1])
	remote, err2 := parseNetTCPAddr(words[2])
	if err1 != nil || err2 != nil {
		return tcpPair{}, false, errNetTCP
	}
	return tcpPair{local, remote}, words[3] == established, nil
}

func parseNetTCPAddr(text string) (netip.AddrPort, error) {
	digits, hexport, ok := strings.Cut(text, ":")
	b, err := hex.DecodeString(digits)
	port, err2 := strconv.ParseUint(hexport, 16, 16)
	if !ok || err != nil || err2 != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, errNetTCP
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(port)), nil
}

// remotes are the other ends of this host's established TCP connections of a daemon with that port, as this process may see them.
// A daemon has its connections by one protocol, and the other file costs as much to read.
func remotes(proc fs.FS, daemon uint16) (list []netip.Addr) {
	for _, name := range []string{"self/net/tcp", "self/net/tcp6"} {
		f, err := proc.Open(name)
		if err != nil {
			continue
		}
		for _, pair := range readConnections(f) {
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

func readConnections(r io.Reader) []tcpPair {
	var list []tcpPair
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if pair, up, err := parseNetTCPLine(lines.Text()); err == nil && up {
			list = append(list, pair)
		}
	}
	return list
}
