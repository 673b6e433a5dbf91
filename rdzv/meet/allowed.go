package meet

import (
	"context"
	"net"
	"net/netip"
	"slices"

	"rdzv/rdzv/meet/internal/hosts"
)

// Config.Net restricts the addresses of this host that the job uses. A store that the user, or the
// launcher, has named may be found over another network, because the name of a host is often that
// of its management network. Its agents use it over an allowed one.

// allowed returns the addresses of this host that Config.Net allows.
func (c *Config) allowed() ([]netip.Addr, error) {
	list, err := c.usableInterfaces()
	return hosts.Addresses(list), err
}

// OwnFor returns the address of this host by which the job may reach another one: own, from which
// the kernel connects to that, or, if Config.Net excludes it, an allowed one that is in the same
// network as the other one. The kernel connects from the first of several interfaces in a network.
// The result is not valid if Config.Net allows none.
func (c *Config) OwnFor(own, other netip.Addr) (netip.Addr, error) {
	if len(c.Net) == 0 || c.oneNode() || own.IsLoopback() {
		return own, nil
	}
	c.setDefaults()
	list, err := c.usableInterfaces()
	if err != nil || slices.Contains(hosts.Addresses(list), own) {
		return own, err
	}
	for _, i := range list {
		for _, p := range i.Addrs {
			if p.Contains(other.Unmap()) {
				return p.Addr(), nil
			}
		}
	}
	return netip.Addr{}, nil
}

// ownFor is OwnFor for a connection.
func (c *Config) ownFor(conn net.Conn) (netip.Addr, error) {
	addr := func(a net.Addr) netip.Addr { return a.(*net.TCPAddr).AddrPort().Addr().Unmap() }
	return c.OwnFor(addr(conn.LocalAddr()), addr(conn.RemoteAddr()))
}

// keepToNetworks connects to the store over a network that Config.Net allows, if it was found over
// another one. If it does not answer there, Meeting.Own is not valid.
func (l *locator) keepToNetworks(ctx context.Context, m *Meeting) (err error) {
	if m.Hosting {
		return nil
	}
	if m.Own, err = l.config.ownFor(m.first); err != nil || m.Own.IsValid() {
		return err
	}
	for _, addr := range m.Addrs {
		if conn, own := m.reach(ctx, addr); own.IsValid() {
			m.first.Close()
			m.first, m.Addr, m.Own = conn, addr, own
			return nil
		}
	}
	return nil
}

// reach returns a connection to the same store at addr, and the address of this host by which the
// job may reach it; none if it does not answer there, or Config.Net excludes that.
func (m *Meeting) reach(ctx context.Context, addr netip.AddrPort) (net.Conn, netip.Addr) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, greeting, err := m.dialer.Dial(ctx, addr)
	if err != nil {
		return nil, netip.Addr{}
	}
	if greeting.ID == m.id {
		if own, err := m.config.ownFor(conn); err == nil && own.IsValid() {
			return conn, own
		}
	}
	conn.Close()
	return nil, netip.Addr{}
}

// withAllowed returns the addresses on which a store on this host listens if the user has named one
// of its addresses. If Config.Net excludes that one, agents find the store there and use it at the
// allowed ones, which come first.
func withAllowed(c *Config, named []netip.Addr) ([]netip.Addr, error) {
	if len(c.Net) == 0 || !slices.ContainsFunc(named, notLoopback) {
		return named, nil
	}
	allowed, err := c.allowed()
	if err != nil || slices.Contains(allowed, named[0]) {
		return named, err
	}
	return append(allowed, named...), nil
}

// findable returns the addresses on which a store on this host listens if the other agents have its
// name: the allowed ones, and then those that Config.Net excludes. The name may resolve to any of
// them there, and to a loopback address here.
func (c *Config) findable(allowed []netip.Addr) []netip.Addr {
	all, err := c.Interfaces()
	if err != nil || len(c.Net) == 0 || !slices.ContainsFunc(allowed, notLoopback) {
		return allowed
	}
	addrs := slices.Clip(allowed)
	for _, a := range hosts.Addresses(hosts.Usable(all, hosts.Filter{})) {
		if !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	return addrs
}
