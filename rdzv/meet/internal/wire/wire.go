// Package wire holds what the lines have in common that agents send one another before the store's
// own protocol: they are made of words, and some of those are addresses.
//
// What a line means belongs to the package that sends it.
package wire

import (
	"errors"
	"net/netip"
	"strings"
)

// Magic begins every line.
const Magic = "rdzv1"

// MaxAddrs is how many addresses a line may have.
const MaxAddrs = 16

var errAddrs = errors.New("not a list of addresses and ports")

// FormatAddrs writes addresses with commas between; a zone means something on its own host only.
func FormatAddrs(addrs []netip.AddrPort) string {
	var texts []string
	for _, a := range addrs[:min(len(addrs), MaxAddrs)] {
		texts = append(texts, netip.AddrPortFrom(a.Addr().WithZone(""), a.Port()).String())
	}
	return strings.Join(texts, ",")
}

// ParseAddrs reads what FormatAddrs wrote.
func ParseAddrs(list string) ([]netip.AddrPort, error) {
	var addrs []netip.AddrPort
	for text := range strings.SplitSeq(list, ",") {
		a, err := netip.ParseAddrPort(text)
		if err != nil || a.Port() == 0 || a.Addr().IsUnspecified() || a.Addr().IsMulticast() || a.Addr().Zone() != "" || len(addrs) == MaxAddrs {
			return nil, errAddrs
		}
		addrs = append(addrs, a)
	}
	return addrs, nil
}

// Word makes a name from elsewhere fit to be one word of a line, or of a message: letters, digits,
// dots and dashes, 64 at most.
func Word(name string) string {
	keep := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}
	name = strings.Map(keep, name)
	if name == "" {
		return "-"
	}
	return name[:min(len(name), 64)]
}
