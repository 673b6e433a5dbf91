package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// The multicast groups of beacons: one of RFC 2365's organization-local scope, and one of the link for IPv6. Beacons never leave the local network (TTL 1).
var (
	group4 = netip.AddrFrom4([4]byte{239, 255, 114, 122})
	group6 = netip.MustParseAddr("ff02::7264:7a76")
)

const ipMulticastAll = 49 // IP_MULTICAST_ALL of Linux, which package syscall lacks

// A radio sends and hears beacons on some interfaces, through one socket for each and for each of IPv4 and IPv6.
type radio struct {
	stations []station
	done     sync.WaitGroup
}

type station struct {
	conn *net.UDPConn
	to   *net.UDPAddr
	zone string
}

// heard is one packet, and where it came from.
type heardPacket struct {
	packet []byte
	from   netip.Addr
	zone   string // the interface it came in by
}

// openRadio listens on all the interfaces that can do multicast; port is the same for everybody.
func openRadio(ctx context.Context, list []Interface, port int) (*radio, error) {
	r := &radio{}
	var errs []error
	for _, i := range list {
		if !i.Multicast && !i.Loopback {
			continue
		}
		four, six := families(i)
		if four {
			errs = append(errs, r.tune(ctx, "udp4", netip.AddrPortFrom(group4, uint16(port)), i))
		}
		if six {
			errs = append(errs, r.tune(ctx, "udp6", netip.AddrPortFrom(group6.WithZone(i.Name), uint16(port)), i))
		}
	}
	if len(r.stations) == 0 {
		return nil, errors.Join(append(errs, errors.New("no interface can do multicast"))...)
	}
	return r, nil
}

func families(i Interface) (four, six bool) {
	for _, p := range i.Addrs {
		four = four || p.Addr().Is4()
		six = six || p.Addr().Is6()
	}
	return four, six
}

func (r *radio) tune(ctx context.Context, network string, group netip.AddrPort, i Interface) error {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = subscribe(int(fd), group.Addr(), i.Index) }), err)
	}}
	conn, err := lc.ListenPacket(ctx, network, group.String())
	if err != nil {
		return fmt.Errorf("cannot use multicast on %s: %w", i.Name, err)
	}
	r.stations = append(r.stations, station{conn.(*net.UDPConn), net.UDPAddrFromAddrPort(group), i.Name})
	return nil
}

// subscribe joins the group on one interface, and sends only there. Several agents of a host share the port.
func subscribe(fd int, group netip.Addr, index int) error {
	errs := []error{syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)}
	if group.Is4() {
		member := &syscall.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(index)}
		errs = append(errs,
			syscall.SetsockoptIPMreqn(fd, syscall.IPPROTO_IP, syscall.IP_ADD_MEMBERSHIP, member),
			syscall.SetsockoptIPMreqn(fd, syscall.IPPROTO_IP, syscall.IP_MULTICAST_IF, member),
			syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, ipMulticastAll, 0))
	} else {
		member := &syscall.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(index)}
		errs = append(errs,
			syscall.SetsockoptIPv6Mreq(fd, syscall.IPPROTO_IPV6, syscall.IPV6_JOIN_GROUP, member),
			syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_MULTICAST_IF, index))
	}
	return errors.Join(errs...)
}

// send calls out on all interfaces; a network that is down just now is no reason to stop.
func (r *radio) send(packet []byte) {
	for _, s := range r.stations {
		s.conn.WriteTo(packet, s.to)
	}
}

// listen gives every packet to hear, one at a time, until close.
func (r *radio) listen(hear func(heardPacket)) {
	var one sync.Mutex
	for _, s := range r.stations {
		r.done.Go(func() {
			buf := make([]byte, maxBeacon+1)
			for {
				n, from, err := s.conn.ReadFromUDPAddrPort(buf)
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err != nil {
					continue
				}
				one.Lock()
				hear(heardPacket{buf[:n], from.Addr().Unmap(), s.zone})
				one.Unlock()
			}
		})
	}
}

func (r *radio) close() {
	for _, s := range r.stations {
		s.conn.Close()
	}
	r.done.Wait()
}
