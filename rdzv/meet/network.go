package meet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/hosts"
)

// here gives the interfaces and addresses of this host that others can reach, as --net narrows
// them.
func (c *Config) here() ([]hosts.Interface, error) {
	all, err := c.Interfaces()
	if err != nil {
		return nil, err
	}
	f, err := hosts.ParseFilter(c.Net)
	if err != nil {
		return nil, err
	}
	list := hosts.Usable(all, f)
	hosts.ByRoute(c.Proc, list)
	if len(list) == 0 && len(c.Net) > 0 {
		return nil, fmt.Errorf("cannot use network %q: no interface that is up matches it", c.Net)
	}
	return list, nil
}

// listenAddrs is where a store listens: on loopback if all agents are on this node, or if there is
// no network at all.
func (c *Config) listenAddrs() ([]netip.Addr, error) {
	if c.oneNode() {
		return onLoopback[:1], nil
	}
	list, err := c.here()
	if err != nil || len(list) > 0 {
		return hosts.Addresses(list), err
	}
	return onLoopback[:1], nil
}

// mine gives those of the addresses that are of this host.
func (c *Config) mine(addrs []netip.Addr) ([]netip.Addr, error) {
	all, err := c.Interfaces()
	if err != nil {
		return nil, err
	}
	var here []netip.Addr
	for _, a := range addrs {
		a = a.Unmap()
		has := func(p netip.Prefix) bool { return p.Addr().Unmap() == a.WithZone("") }
		if a.IsLoopback() || slices.ContainsFunc(all, func(i hosts.Interface) bool { return slices.ContainsFunc(i.Addrs, has) }) {
			here = append(here, a)
		}
	}
	return here, nil
}

// openMulticast opens the socket of beacons on the interfaces that a store would listen on: on
// loopback when there is no other.
func (c *Config) openMulticast(ctx context.Context) (*beacon.Socket, error) {
	list, err := c.here()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		all, err := c.Interfaces()
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(all, func(i hosts.Interface) bool { return !i.Loopback })
	}
	return beacon.Open(ctx, list, c.PortLo)
}

// onLoopback is where a store of one node listens: nobody else can even knock.
var onLoopback = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
