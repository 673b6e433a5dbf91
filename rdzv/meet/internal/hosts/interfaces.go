package hosts

import (
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"rdzv/internal/interfaces"
)

// An Interface is a network interface of this host.
type Interface = interfaces.Interface

// Addresses returns the addresses of the interfaces. Link-local IPv6 addresses have the interface
// as zone.
func Addresses(list []Interface) []netip.Addr {
	var addrs []netip.Addr
	for _, i := range list {
		for _, p := range i.Addrs {
			a := p.Addr()
			if a.Is6() && a.IsLinkLocalUnicast() {
				a = a.WithZone(i.Name)
			}
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// ByRoute moves the interfaces with a default route of IPv4 to the front of the list, in the
// kernel's order, because other hosts are most likely to reach them. It does nothing if proc is nil
// or has no table of routes.
func ByRoute(proc fs.FS, list []Interface) {
	if proc == nil {
		return
	}
	table, err := fs.ReadFile(proc, "self/net/route")
	if err != nil {
		return
	}
	routes := defaultRoutes(string(table))
	position := func(i Interface) int {
		if p := slices.Index(routes, i.Name); p >= 0 {
			return p
		}
		return len(routes)
	}
	slices.SortStableFunc(list, func(a, b Interface) int { return position(a) - position(b) })
}

// defaultRoutes returns the interfaces of the default routes in /proc/net/route.
func defaultRoutes(table string) []string {
	var names []string
	for line := range strings.Lines(table) {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask ...
		words := strings.Fields(line)
		if len(words) >= 8 && words[1] == "00000000" && words[7] == "00000000" {
			names = append(names, words[0])
		}
	}
	return names
}
