package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// tentative is how long an address may take to become usable: IPv6 first asks the network whether
// another has it.
const tentative = 3 * time.Second

// tentativeEvery is how often such an address is tried.
const tentativeEvery = 200 * time.Millisecond

// Listen binds one port on all the addresses: the first of the ports that is free on each. It waits
// for addresses that are not usable yet.
func Listen(ctx context.Context, addrs []netip.Addr, ports []int) ([]net.Listener, error) {
	for limit := time.Now().Add(tentative); ; {
		bound, err := listen(ctx, addrs, ports)
		if !errors.Is(err, syscall.EADDRNOTAVAIL) || time.Now().After(limit) || ctx.Err() != nil {
			return bound, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(tentativeEvery):
		}
	}
}

// listen is Listen for addresses that are usable. An address that is not
// there (yet) is left out, as long as one is left.
func listen(ctx context.Context, addrs []netip.Addr, ports []int) ([]net.Listener, error) {
	var last error
	for _, port := range ports {
		bound, err := listenPort(ctx, addrs, uint16(port))
		if err == nil {
			return bound, nil
		}
		last = err
	}
	if len(ports) > 1 {
		return nil, fmt.Errorf("cannot listen on any of ports %s: %w", join(ports), last)
	}
	var op *net.OpError
	var errno syscall.Errno
	if errors.As(last, &op) && errors.As(last, &errno) && op.Addr != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", op.Addr, errno)
	}
	return nil, fmt.Errorf("cannot listen: %w", last)
}

func listenPort(ctx context.Context, addrs []netip.Addr, port uint16) ([]net.Listener, error) {
	var bound []net.Listener
	var last error
	for _, a := range addrs {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(a, port).String())
		switch {
		case err == nil:
			bound = append(bound, l)
		case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
			last = err
		default:
			closeAll(bound)
			return nil, err
		}
	}
	if len(bound) == 0 {
		return nil, last
	}
	return bound, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

func addrsOf(listeners []net.Listener) []netip.AddrPort {
	var addrs []netip.AddrPort
	for _, l := range listeners {
		addrs = append(addrs, addrOf(l.Addr()))
	}
	return addrs
}

func join(ports []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ","), "[]")
}
