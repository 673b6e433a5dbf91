package hosts

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// An Interface is a network interface of this host.
type Interface struct {
	Name                    string
	Index                   int
	Up, Loopback, Multicast bool
	Addrs                   []netip.Prefix // with the prefix length of their network
}

// System returns the network interfaces of this host.
func System() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list the network interfaces: %w", err)
	}
	list := make([]Interface, 0, len(all))
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue // the interface has disappeared
		}
		list = append(list, Interface{
			Name: i.Name, Index: i.Index, Addrs: prefixes(addrs),
			Up:        i.Flags&net.FlagUp != 0,
			Loopback:  i.Flags&net.FlagLoopback != 0,
			Multicast: i.Flags&net.FlagMulticast != 0,
		})
	}
	return list, nil
}

func prefixes(addrs []net.Addr) []netip.Prefix {
	var list []netip.Prefix
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// Addresses returns the addresses of the interfaces. Link-local IPv6 addresses have the interface
// as zone.
func Addresses(list []Interface) []netip.Addr {
	var addrs []netip.Addr
	for _, i := range list {
		for _, p := range i.Addrs {
			addrs = append(addrs, withZone(p.Addr(), i.Name))
		}
	}
	return addrs
}

func withZone(a netip.Addr, name string) netip.Addr {
	if a.Is6() && a.IsLinkLocalUnicast() {
		return a.WithZone(name)
	}
	return a
}

// defaultRoutes reads /proc/net/route and returns the interfaces of the default routes in the
// kernel's order.
func defaultRoutes(r io.Reader) []string {
	var names []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask ...
		words := strings.Fields(lines.Text())
		if len(words) >= 8 && words[1] == "00000000" && words[7] == "00000000" {
			names = append(names, words[0])
		}
	}
	return names
}

// ByRoute moves the interfaces with a default route of IPv4 to the front of the list, because other
// hosts are most likely to reach them. It does nothing if proc is nil or has no table of routes.
func ByRoute(proc fs.FS, list []Interface) {
	if proc == nil {
		return
	}
	f, err := proc.Open("self/net/route")
	if err != nil {
		return
	}
	defer f.Close()
	routes := defaultRoutes(f)
	slices.SortStableFunc(list, func(a, b Interface) int {
		return position(routes, a.Name) - position(routes, b.Name)
	})
}

func position(routes []string, name string) int {
	if i := slices.Index(routes, name); i >= 0 {
		return i
	}
	return len(routes)
}
