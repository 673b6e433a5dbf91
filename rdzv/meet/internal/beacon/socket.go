package beacon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"rdzv/rdzv/meet/internal/hosts"
)

// The multicast groups of beacons: one of RFC 2365's organization-local scope, and one of the link
// for IPv6. Beacons never leave the local network (TTL 1).
var (
	group4 = netip.AddrFrom4([4]byte{239, 255, 114, 122})
	group6 = netip.MustParseAddr("ff02::7264:7a76")
)

// A Socket sends and hears beacons on some interfaces, through one of the system for each and for
// each of IPv4 and IPv6.
type Socket struct {
	conns []conn
	done  sync.WaitGroup
}

type conn struct {
	*net.UDPConn
	to   *net.UDPAddr
	zone string
}

// A Packet is one beacon as it was received, and where it came from.
type Packet struct {
	Data []byte
	From netip.Addr
	Zone string // the interface it came in by
}

// Open listens on all the interfaces that can do multicast; port is the same for everybody.
func Open(ctx context.Context, list []hosts.Interface, port int) (*Socket, error) {
	s := &Socket{}
	var errs []error
	for _, i := range list {
		if !i.Multicast && !i.Loopback {
			continue
		}
		four, six := families(i)
		if four {
			errs = append(errs, s.join(ctx, "udp4", netip.AddrPortFrom(group4, uint16(port)), i))
		}
		if six {
			errs = append(errs, s.join(ctx, "udp6", netip.AddrPortFrom(group6.WithZone(i.Name), uint16(port)), i))
		}
	}
	if len(s.conns) == 0 {
		return nil, errors.Join(append(errs, errors.New("no interface can do multicast"))...)
	}
	return s, nil
}

func families(i hosts.Interface) (four, six bool) {
	for _, p := range i.Addrs {
		four = four || p.Addr().Is4()
		six = six || p.Addr().Is6()
	}
	return four, six
}

func (s *Socket) join(ctx context.Context, network string, group netip.AddrPort, i hosts.Interface) error {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = subscribe(int(fd), group.Addr(), i.Index) }), err)
	}}
	c, err := lc.ListenPacket(ctx, network, group.String())
	if err != nil {
		return fmt.Errorf("cannot use multicast on %s: %w", i.Name, err)
	}
	s.conns = append(s.conns, conn{c.(*net.UDPConn), net.UDPAddrFromAddrPort(group), i.Name})
	return nil
}

// subscribe joins the group on one interface, and sends only there. Several agents of a host share
// the port.
func subscribe(fd int, group netip.Addr, index int) error {
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

// Send calls out on all interfaces; a network that is down just now is no reason to stop.
func (s *Socket) Send(packet []byte) {
	for _, c := range s.conns {
		c.WriteTo(packet, c.to)
	}
}

// Listen gives every packet to hear, one at a time, until Close.
func (s *Socket) Listen(hear func(Packet)) {
	var one sync.Mutex
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
				one.Lock()
				hear(Packet{buf[:n], from.Addr().Unmap(), c.zone})
				one.Unlock()
			}
		})
	}
}

// Close ends sending and listening.
func (s *Socket) Close() {
	for _, c := range s.conns {
		c.Close()
	}
	s.done.Wait()
}
