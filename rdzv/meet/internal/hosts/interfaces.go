package hosts

import (
	"fmt"
	"net"
	"net/netip"
)

// An Interface is one network interface of this host, with what meet has to know of it.
type Interface struct {
	Name                    string
	Index                   int
	Up, Loopback, Multicast bool
	Addrs                   []netip.Prefix
}

// System reads the interfaces of this host.
func System() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list the network interfaces: %w", err)
	}
	list := make([]Interface, 0, len(all))
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue // gone in between
		}
		list = append(list, Interface{
			Name: i.Name, Index: i.Index, Addrs: prefixes(addrs),
			Up: i.Flags&net.FlagUp != 0, Loopback: i.Flags&net.FlagLoopback != 0, Multicast: i.Flags&net.FlagMulticast != 0,
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

// Addresses lists the addresses of the interfaces; a link-local one of IPv6 names its interface.
func Addresses(list []Interface) []netip.Addr {
	var addrs []netip.Addr
	for _, i := range list {
		for _, p := range i.Addrs {
			addrs = append(addrs, zoned(p.Addr(), i.Name))
		}
	}
	return addrs
}

func zoned(a netip.Addr, name string) netip.Addr {
	if a.Is6() && a.IsLinkLocalUnicast() {
		return a.WithZone(name)
	}
	return a
}
