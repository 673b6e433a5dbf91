package hosts

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
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

// local begins the names of interfaces that lead nowhere but into this host: bridges and ends of containers and virtual machines.
// Their Addresses are often the same on every host.
var local = []string{"docker", "br-", "veth", "virbr", "vnet", "cni", "flannel", "cali", "cilium", "lxc", "lxdbr", "podman", "nerdctl", "weave", "kube-", "dummy"}

func leadsNowhere(name string) bool {
	return slices.ContainsFunc(local, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// Usable picks the interfaces, each with the Addresses, by which other hosts can reach this one: up, not loopback, not local to this host.
// A Filter that says yes wins over that last rule. Link-local Addresses count only where an interface has no other.
func Usable(all []Interface, f Filter) []Interface {
	var list []Interface
	for _, i := range all {
		if !i.Up || i.Loopback {
			continue
		}
		i.Addrs = f.pick(i, !leadsNowhere(i.Name))
		if len(i.Addrs) > 0 {
			list = append(list, i)
		}
	}
	return list
}

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
