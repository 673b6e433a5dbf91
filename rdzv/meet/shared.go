package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/secret"
)

// orShared returns election, for an agent on the host that --store names, which must not host a
// store if a shared one is there.
func orShared(elect election) election {
	return func(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
		if m, err := l.findShared(ctx, p); m != nil || err != nil {
			return m, err
		}
		if l.wasShared {
			return l.findStore(ctx, p)
		}
		return elect(ctx, l, p)
	}
}

// findShared returns the shared store on this host, nil if there is none. One of another version
// refuses this agent.
func (l *locator) findShared(ctx context.Context, p *plan) (*Meeting, error) {
	if p.shared == nil {
		return nil, nil
	}
	d, err := l.dialer(p, "")
	if err != nil {
		return nil, err
	}
	probing, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	ports := p.ports
	if !p.named {
		ports = sharedPorts(l.config)
	}
	for _, port := range ports {
		for _, addr := range p.addrs {
			at := netip.AddrPortFrom(addr, uint16(port))
			conn, greeting, err := d.Dial(probing, at)
			version, isVersion := errors.AsType[*protocol.VersionError](err)
			switch {
			case isVersion && version.Shared:
				return nil, &RefusedError{By: noticeOf(gate.Rejection{
					Host: l.config.Host, Addr: addr, Reason: err, Hosting: true,
				})}
			case err != nil:
				continue
			}
			if greeting.Shared {
				return p.meetingAt(d, &answer{Greeting: greeting, conn: conn, addr: at}), nil
			}
			conn.Close()
		}
	}
	return nil, nil
}

// A SharedGate admits the agents of all jobs of one user to a shared store. Its Accept returns only
// authenticated connections.
type SharedGate struct {
	net.Listener
	Addrs []netip.AddrPort // on which it listens
}

// ListenShared opens the gate of a shared store at listen, which is HOST, :PORT or HOST:PORT; "" is
// all addresses of this host. Without a port it uses one on which agents search if --store has none
// either. It refuses to be the second one of this user there.
func ListenShared(ctx context.Context, c Config, listen string) (*SharedGate, error) {
	c.setDefaults()
	addrs, ports, err := sharedAddrs(ctx, &c, listen)
	if err != nil {
		return nil, err
	}
	token, err := c.Token()
	if err != nil {
		return nil, err
	}
	key := secret.DeriveKey(token, sharedName)
	listeners, err := listenFirst(ctx, &c, &key, addrs, ports)
	if err != nil {
		return nil, err
	}
	reported := &rejections{notify: c.Notify}
	g, err := gate.New(listeners, &key, nil, gate.Order{}, func(r gate.Rejection) {
		if !errors.Is(r.Reason, gate.ErrDifferentJob) { // an agent that has yet to learn what is here
			reported.add(r)
		}
	})
	if err != nil {
		return nil, err
	}
	g.Admit()
	return &SharedGate{g, g.Addrs()}, nil
}

// sharedAddrs are the addresses on which the shared store listens, and the ports that it tries.
func sharedAddrs(ctx context.Context, c *Config, listen string) ([]netip.Addr, []int, error) {
	host, port, err := ParseListen(listen)
	if err != nil {
		return nil, nil, err
	}
	ports := sharedPorts(c)
	if port != 0 {
		ports = []int{port}
	}
	if host == "" {
		addrs, err := c.listenAddrs()
		return addrs, ports, err
	}
	addrs, err := ownStoreAddrs(ctx, c, host)
	switch {
	case err != nil:
	case len(addrs) == 0:
		err = fmt.Errorf("cannot listen on %q: this host does not have that address", host)
	case len(c.Net) > 0 && slices.ContainsFunc(addrs, notLoopback):
		addrs, err = onlyAllowed(c, host)
	}
	return addrs, ports, err
}

// onlyAllowed returns the addresses of this host on which a shared store listens that is to listen
// at host, which is its name or one of its addresses, and on networks that Config.Net allows.
func onlyAllowed(c *Config, host string) ([]netip.Addr, error) {
	allowed, err := c.allowed()
	literal, notAddr := netip.ParseAddr(host)
	switch {
	case err != nil || notAddr != nil:
		return allowed, err
	case slices.Contains(allowed, literal.Unmap()):
		return []netip.Addr{literal.Unmap()}, nil
	}
	return nil, fmt.Errorf("cannot listen on %s: --net %s excludes it", host,
		strings.Join(c.Net, ","))
}

// ParseListen parses where a shared store listens: HOST, :PORT, HOST:PORT, or "".
func ParseListen(listen string) (host string, port int, err error) {
	switch {
	case listen == "":
	case listen[0] == ':':
		_, port, err = ParseStore("localhost" + listen)
	default:
		host, port, err = ParseStore(listen)
	}
	if err != nil {
		err = fmt.Errorf("cannot listen on %q: not HOST, :PORT or HOST:PORT", listen)
	}
	return host, port, err
}

// listenFirst listens on the first port that is free. If this user has a shared store on one before
// it, agents would find that one.
func listenFirst(
	ctx context.Context, c *Config, key *secret.Key, addrs []netip.Addr, ports []int,
) ([]net.Listener, error) {
	d, err := gate.NewDialer(key, nil, c.Host, "")
	if err != nil {
		return nil, err
	}
	for _, port := range ports {
		listeners, busy := gate.Listen(ctx, addrs, []int{port})
		if busy == nil {
			return listeners, nil
		}
		err = busy
		if !errors.Is(busy, syscall.EADDRINUSE) {
			return nil, busy
		}
		if user := userOf(ctx, d, addrs, port); user != "" && (len(ports) == 1 || user == ownShared) {
			return nil, &PortInUseError{Err: busy, User: user}
		}
	}
	if len(ports) > 1 {
		_, err = gate.Listen(ctx, addrs, ports) // its error names all of them
	}
	return nil, inUseBy(err, c.Proc, ports)
}

const ownShared = "a shared store of yours"

// userOf says who uses a port; "" if that cannot be determined.
func userOf(ctx context.Context, d *gate.Dialer, addrs []netip.Addr, port int) string {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, addr := range addrs {
		conn, _, err := d.Dial(ctx, netip.AddrPortFrom(addr, uint16(port)))
		service, isService := errors.AsType[gate.ServiceError](err)
		_, isVersion := errors.AsType[*protocol.VersionError](err)
		switch {
		case err == nil:
			conn.Close()
			return ownShared
		case isVersion:
			return "a shared store of yours of another version"
		case errors.Is(err, gate.ErrDifferentToken):
			return "a shared store with a different token"
		case errors.Is(err, gate.ErrDifferentJob):
			return "the store of a job"
		case isService:
			return string(service)
		}
	}
	return ""
}
