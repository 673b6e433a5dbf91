package meet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/hosts"
)

// usableInterfaces returns the interfaces of this host with the addresses that others can reach,
// restricted by --net.
func (c *Config) usableInterfaces() ([]hosts.Interface, error) {
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
		return nil, noInterface(c.Net, hosts.Usable(all, hosts.Filter{}))
	}
	return list, nil
}

// noInterface is the error if none of the interfaces that there are matches Config.Net.
func noInterface(specs []string, list []hosts.Interface) error {
	wanted := "that matches"
	if len(specs) == 1 && !strings.ContainsAny(specs[0], "/!") {
		wanted = specs[0]
	}
	names := make([]string, len(list))
	for i, face := range list {
		names[i] = face.Name
	}
	there := "there are " + strings.Join(names, ", ")
	switch len(names) {
	case 0:
		there = "there is only the loopback interface"
	case 1:
		there = "there is only " + names[0]
	}
	return fmt.Errorf("cannot use network %q: no interface %s is up; %s",
		strings.Join(specs, ","), wanted, there)
}

// OwnAddrs returns the addresses at which other hosts may reach this one, the one of the default
// route first; none if there is no network.
func OwnAddrs(c Config) ([]string, error) {
	c.setDefaults()
	list, err := c.usableInterfaces()
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, a := range hosts.Addresses(list) {
		texts = append(texts, a.String())
	}
	return texts, nil
}

// listenAddrs returns the addresses on which a store on this host listens: loopback if all agents
// are on this host or there is no network.
func (c *Config) listenAddrs() ([]netip.Addr, error) {
	if c.oneNode() {
		return loopbackAddrs[:1], nil
	}
	list, err := c.usableInterfaces()
	if err != nil || len(list) > 0 {
		return hosts.Addresses(list), err
	}
	return loopbackAddrs[:1], nil
}

// ownAddrs returns those of the addresses that belong to this host.
func (c *Config) ownAddrs(addrs []netip.Addr) ([]netip.Addr, error) {
	all, err := c.Interfaces()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range addrs {
		a = a.Unmap()
		has := func(p netip.Prefix) bool { return p.Addr().Unmap() == a.WithZone("") }
		onInterface := func(i hosts.Interface) bool { return slices.ContainsFunc(i.Addrs, has) }
		if a.IsLoopback() || slices.ContainsFunc(all, onInterface) {
			own = append(own, a)
		}
	}
	return own, nil
}

// openMulticast opens a socket for beacons on the interfaces on which a store would listen; on
// loopback if there are no others.
func (c *Config) openMulticast(ctx context.Context) (*beacon.Socket, error) {
	list, err := c.usableInterfaces()
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

// loopbackAddrs are the loopback addresses. The first one is where a store listens that no other
// host can reach.
var loopbackAddrs = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// addressesOf returns the addresses without their ports.
func addressesOf(list []netip.AddrPort) []netip.Addr {
	var addrs []netip.Addr
	for _, a := range list {
		addrs = append(addrs, a.Addr())
	}
	return addrs
}
