package meet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// namedStore plans for --store HOST[:PORT]: the agent that owns the address hosts, and if several
// do, the one that gets the lock.
func namedStore(ctx context.Context, c *Config) (*plan, error) {
	host, port, err := ParseStore(c.Store)
	if err != nil {
		return nil, err
	}
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.hosts = false
	if port != 0 {
		p.ports, p.named = []int{port}, true
		p.foreign = fmt.Sprintf("another service uses that port: "+
			"--store %s, without a port, chooses a free one", host)
	}
	p.hint = fmt.Sprintf("the agent on host %q hosts the store: is it running? "+
		"All nodes must run the same command, or be given the same --job NAME", host)
	p.sources = []source{names(c.Resolve, []string{host}, 0, p.ports)}
	if p.addrs, err = owned(ctx, c, host); err != nil {
		return nil, err
	}
	if len(p.addrs) > 0 {
		p.sources = []source{fixed(host, 0, p.addrs, p.ports)}
	}
	return p, nil
}

// ParseStore reads HOST or HOST:PORT; HOST is a name or an address, IPv6 in brackets if a port
// follows. Port 0 is none.
func ParseStore(store string) (host string, port int, err error) {
	host, digits := splitStore(store)
	if digits != "" {
		port, err = strconv.Atoi(digits)
	}
	_, notAddr := netip.ParseAddr(host)
	isName := !strings.ContainsFunc(host, func(r rune) bool { return strings.ContainsRune(":/,%[]@", r) || r <= ' ' })
	if err != nil || digits != "" && (port < 1 || port > 65535) || host == "" || notAddr != nil && !isName {
		return "", 0, fmt.Errorf("cannot use store %q: not HOST or HOST:PORT", store)
	}
	return host, port, nil
}

// splitStore takes the port off, and the brackets. A colon without a port is left on the host,
// which spoils it.
func splitStore(store string) (host, port string) {
	if inside, ok := strings.CutPrefix(store, "["); ok {
		if addr, rest, ok := strings.Cut(inside, "]"); ok && (rest == "" || len(rest) > 1 && rest[0] == ':') && strings.Contains(addr, ":") {
			return addr, strings.TrimPrefix(rest, ":")
		}
		return store, ""
	}
	if host, port, ok := strings.Cut(store, ":"); ok && port != "" && !strings.Contains(port, ":") {
		return host, port
	}
	return store, ""
}

// Resolvers may take many seconds to say no. What this host is called it knows without them; they
// may only add an address.
const (
	resolveTimeout = 5 * time.Second
	ownNameTimeout = 500 * time.Millisecond
)

// owned gives the addresses on which this agent would host the store called host; none if the name
// is of another host. A literal address is taken alone. A name stands for this host as a whole:
// Debian lets a host's own name be 127.0.1.1, which is of no use to others.
func owned(ctx context.Context, c *Config, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return c.mine([]netip.Addr{a})
	}
	if host == "localhost" {
		return onLoopback[:1], nil
	}
	limit := ownNameTimeout
	if !sameHost(host, c.Host) {
		limit = resolveTimeout
	}
	soon, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	named, _ := c.Resolve(soon, host) // a name that is not known yet is another host's; the search asks again
	mine, err := c.mine(named)
	if err != nil || len(mine) == 0 && !sameHost(host, c.Host) {
		return nil, err
	}
	all, err := c.listenAddrs()
	mine = slices.DeleteFunc(mine, netip.Addr.IsLoopback)
	return sorted(append(all, mine...)), err
}

// sameHost compares names as far as both give one: node1 is node1.cluster.
func sameHost(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b || a != "" && strings.HasPrefix(b, a+".") || b != "" && strings.HasPrefix(a, b+".")
}

func sorted(addrs []netip.Addr) []netip.Addr {
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}
