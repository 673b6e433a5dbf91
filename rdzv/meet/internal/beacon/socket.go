package beacon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"rdzv/rdzv/meet/internal/hosts"
)

// The multicast groups of beacons: one of the organization-local scope of RFC 2365, and one of
// IPv6's link-local scope. The TTL of multicast is 1 by default, so beacons do not leave the local
// network.
var (
	group4 = netip.AddrFrom4([4]byte{239, 255, 114, 122})
	group6 = netip.MustParseAddr("ff02::7264:7a76")
)

// A Socket sends and receives beacons on several interfaces. It has one socket of the system per
// interface and IP version. The zero value has none.
type Socket struct {
	conns []conn
	done  sync.WaitGroup
}

type conn struct {
	*net.UDPConn
	to   *net.UDPAddr
	zone string // name of the interface
}

// A Packet is a received packet.
type Packet struct {
	Data []byte
	From netip.Addr
	Zone string // name of the interface on which it was received
}

// Open returns a socket that sends and receives on all interfaces of the list that support
// multicast, and on loopback. All agents must use the same port. It fails if none of the interfaces
// is usable.
func Open(ctx context.Context, list []hosts.Interface, port int) (*Socket, error) {
	s := &Socket{}
	var errs []error
	for _, i := range list {
		if !i.Multicast && !i.Loopback {
			continue
		}
		if slices.ContainsFunc(i.Addrs, func(p netip.Prefix) bool { return p.Addr().Is4() }) {
			errs = append(errs, s.join(ctx, "udp4", group4, port, i))
		}
		if slices.ContainsFunc(i.Addrs, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
			errs = append(errs, s.join(ctx, "udp6", group6.WithZone(i.Name), port, i))
		}
	}
	if len(s.conns) == 0 {
		return nil, errors.Join(append(errs, errors.New("no interface supports multicast"))...)
	}
	return s, nil
}

func (s *Socket) join(
	ctx context.Context, network string, addr netip.Addr, port int, i hosts.Interface,
) error {
	group := netip.AddrPortFrom(addr, uint16(port))
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		control := c.Control(func(fd uintptr) { err = joinGroup(int(fd), addr, i.Index) })
		return errors.Join(control, err)
	}}
	c, err := lc.ListenPacket(ctx, network, group.String())
	if err != nil {
		return fmt.Errorf("cannot use multicast on %s: %w", i.Name, err)
	}
	s.conns = append(s.conns, conn{c.(*net.UDPConn), net.UDPAddrFromAddrPort(group), i.Name})
	return nil
}

// joinGroup receives packets of the group on one interface, and sends only there. Several agents on
// a host may bind the same port.
func joinGroup(fd int, group netip.Addr, index int) error {
	errs := []error{unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)}
	if group.Is4() {
		member := &unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(index)}
		errs = append(errs,
			unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, member),
			unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, member),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0))
	} else {
		member := &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(index)}
		errs = append(errs,
			unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, member),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, index))
	}
	return errors.Join(errs...)
}

// Send sends the packet on all interfaces. It ignores errors, because an interface may be down
// temporarily.
func (s *Socket) Send(packet []byte) {
	for _, c := range s.conns {
		c.WriteTo(packet, c.to)
	}
}

// Receive calls handle for every received packet, one at a time, until Close. The packet's data is
// valid during the call only.
func (s *Socket) Receive(handle func(Packet)) {
	var mu sync.Mutex
	for _, c := range s.conns {
		s.done.Go(func() {
			buf := make([]byte, maxLen+1)
			for {
				n, from, err := c.ReadFromUDPAddrPort(buf)
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err != nil {
					continue
				}
				mu.Lock()
				handle(Packet{buf[:n], from.Addr().Unmap(), c.zone})
				mu.Unlock()
			}
		})
	}
}

// Close closes the socket and waits until no call of handle is running.
func (s *Socket) Close() {
	for _, c := range s.conns {
		c.Close()
	}
	s.done.Wait()
}
