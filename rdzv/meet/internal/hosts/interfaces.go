package hosts

import (
	"fmt"
	"net"
	"net/netip"
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
