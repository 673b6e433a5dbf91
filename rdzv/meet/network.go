package meet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdzv/internal/interfaces"
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
	there := "there are " + interfaces.Names(list)
	switch len(list) {
	case 0:
		there = "there is only the loopback interface"
	case 1:
		there = "there is only " + list[0].Name
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

// ParseStore parses the value of --store, HOST or HOST:PORT. HOST is a name or an address; an IPv6
// address is in brackets if a port follows. Without a port the result is port 0.
func ParseStore(store string) (host string, port int, err error) {
	bad := fmt.Errorf("cannot use store %q: not HOST or HOST:PORT", store)
	inside, bracket := strings.CutPrefix(store, "[")
	host, digits, splitErr := net.SplitHostPort(store)
	switch {
	case splitErr == nil:
		if port, err = strconv.Atoi(digits); err != nil || port < 1 || port > 65535 {
			return "", 0, bad
		}
	case bracket && strings.HasSuffix(inside, "]"):
		host = strings.TrimSuffix(inside, "]")
	default:
		host = store
	}
	_, notAddr := netip.ParseAddr(host)
	notInName := func(r rune) bool { return strings.ContainsRune(":/,%[]@", r) || r <= ' ' }
	if host == "" || notAddr != nil && strings.ContainsFunc(host, notInName) ||
		bracket && !strings.Contains(host, ":") {
		return "", 0, bad
	}
	return host, port, nil
}

// mustResolve tells whether only a resolver knows if a host is this one.
func mustResolve(c *Config, host string) bool {
	_, notAddr := netip.ParseAddr(host)
	return notAddr != nil && host != "localhost" && !sameHost(host, c.Host)
}

// Resolvers may take many seconds to fail. A host recognises its own name without one, so it waits
// only briefly for further addresses.
const (
	resolveTimeout = 5 * time.Second
	ownNameTimeout = 500 * time.Millisecond
)

// ownStoreAddrs returns the addresses on which a store on this host listens if host is its name or
// address; none if host is another host. If host is an address that Config.Net does not exclude,
// only that one is used. A name means all addresses of this host, because it may resolve to an
// address that others cannot use: Debian maps a host's own name to 127.0.1.1.
func ownStoreAddrs(ctx context.Context, c *Config, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		own, err := c.ownAddrs([]netip.Addr{a})
		if err != nil || len(own) == 0 {
			return nil, err
		}
		return withAllowed(c, own)
	}
	if host == "localhost" {
		return loopbackAddrs[:1], nil
	}
	limit := ownNameTimeout
	if mustResolve(c, host) {
		limit = resolveTimeout
	}
	resolveCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	named, _ := c.Resolve(resolveCtx, host) // an unknown name is another host's
	own, err := c.ownAddrs(named)
	if err != nil || len(own) == 0 && mustResolve(c, host) {
		return nil, err
	}
	return hostAddrs(c, own)
}

// hostAddrs returns the addresses on which a store on this host listens if the host was named, with
// the addresses to which the name resolves. The first one, in RDZV_JOIN, is that of the default
// route.
func hostAddrs(c *Config, own []netip.Addr) ([]netip.Addr, error) {
	all, err := c.listenAddrs()
	for _, a := range own {
		if !a.IsLoopback() && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all, err
}

// sameHost reports whether two names may be the same host's: node1 and node1.cluster are.
func sameHost(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b ||
		a != "" && strings.HasPrefix(b, a+".") || b != "" && strings.HasPrefix(a, b+".")
}
