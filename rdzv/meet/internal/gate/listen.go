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

// tentativeTimeout limits the wait for a new address to become usable. IPv6 first checks that no
// other host on the network has the address (duplicate address detection).
const tentativeTimeout = 3 * time.Second

// tentativeRetry is the time between two attempts to use such an address.
const tentativeRetry = 200 * time.Millisecond

// Listen listens on one port of all the addresses: the first of the ports that is free on each
// address. If no address is usable yet, it waits up to 3 s.
func Listen(ctx context.Context, addrs []netip.Addr, ports []int) ([]net.Listener, error) {
	for limit := time.Now().Add(tentativeTimeout); ; {
		bound, err := listen(ctx, addrs, ports)
		if !errors.Is(err, syscall.EADDRNOTAVAIL) || time.Now().After(limit) || ctx.Err() != nil {
			return bound, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(tentativeRetry):
		}
	}
}

// listen is Listen without waiting. It omits addresses that are not usable, unless all are.
func listen(ctx context.Context, addrs []netip.Addr, ports []int) ([]net.Listener, error) {
	var last error
	for _, port := range ports {
		bound, err := listenPort(ctx, addrs, uint16(port))
		if err == nil {
			return bound, nil
		}
		last = err
	}
	op, _ := errors.AsType[*net.OpError](last)
	errno, ok := errors.AsType[syscall.Errno](last)
	switch {
	case !ok || op == nil || op.Addr == nil:
		return nil, fmt.Errorf("cannot listen: %w", last)
	case len(ports) > 1:
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ","), "[]")
		return nil, fmt.Errorf("cannot listen on any of ports %s: %w", list, errno)
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", op.Addr, errno)
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
