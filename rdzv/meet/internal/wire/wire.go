// Package wire encodes and parses the parts that are common to all lines that agents exchange
// before the store's own protocol: words and lists of addresses.
//
// The package that sends a line defines its meaning.
package wire

import (
	"errors"
	"net/netip"
	"strings"
)

// MaxAddrs is the maximum number of addresses in a line.
const MaxAddrs = 16

var errAddrs = errors.New("not a list of addresses and ports")

// FormatAddrs returns the addresses separated by commas, without zones, which are valid on their
// own host only. It omits all but the first MaxAddrs.
func FormatAddrs(addrs []netip.AddrPort) string {
	var texts []string
	for _, a := range addrs[:min(len(addrs), MaxAddrs)] {
		texts = append(texts, netip.AddrPortFrom(a.Addr().WithZone(""), a.Port()).String())
	}
	return strings.Join(texts, ",")
}

// ParseAddrs parses the result of FormatAddrs. It rejects unspecified and multicast addresses,
// zones, port 0, and more than MaxAddrs addresses.
func ParseAddrs(list string) ([]netip.AddrPort, error) {
	var addrs []netip.AddrPort
	for text := range strings.SplitSeq(list, ",") {
		ap, err := netip.ParseAddrPort(text)
		a := ap.Addr()
		if err != nil || ap.Port() == 0 || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" ||
			len(addrs) == MaxAddrs {
			return nil, errAddrs
		}
		addrs = append(addrs, ap)
	}
	return addrs, nil
}

// maxWord is the length of an agent's id in hexadecimal digits, see gate.Instance. The names of
// hosts are shorter.
const maxWord = 96

// Word makes a name that another process has sent safe to use as one word of a line or message: it
// replaces all characters except letters, digits, '.', '-' and '_' by '-', and truncates the name
// to maxWord bytes. An empty name becomes "-".
func Word(name string) string {
	keep := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9',
			r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}
	name = strings.Map(keep, name)
	if name == "" {
		return "-"
	}
	return name[:min(len(name), maxWord)]
}
