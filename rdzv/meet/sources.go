package meet

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdzv/internal/procfs/nettcp"
)

// portPenalty is the priority of a later port relative to the one before it: a later port of an
// address comes after the first port of the portPenalty next addresses.
const portPenalty = 4

// addAll adds each address with each port. priority is that of the first address and port.
func addAll(add func(candidate), name string, priority int, addrs []netip.Addr, ports []int) {
	for i, a := range addrs {
		for j, port := range ports {
			addr := netip.AddrPortFrom(a, uint16(port))
			add(candidate{
				addr: addr, name: name, priority: priority + i + portPenalty*j, laterPort: j > 0,
			})
		}
	}
}

// fixed is the source of known addresses.
func fixed(name string, priority int, addrs []netip.Addr, ports []int) source {
	return func(_ context.Context, add func(candidate)) {
		addAll(add, name, priority, addrs, ports)
	}
}

const (
	resolvers       = 8           // names that are resolved at the same time
	resolveInterval = time.Second // between two attempts to resolve a name
)

// named is the source of the addresses of hosts, of which the first has the best priority. Names
// that cannot be resolved yet are tried again, because a host may start later.
func named(c *Config, hosts []string, priority int, ports []int) source {
	return func(ctx context.Context, add func(candidate)) {
		for _, host := range hosts {
			add(candidate{name: host})
		}
		for rest := hosts; len(rest) > 0 && ctx.Err() == nil; pause(ctx, resolveInterval) {
			rest = c.resolveAll(ctx, rest, func(host string, addrs []netip.Addr, err error) {
				addAll(add, host, priority+slices.Index(hosts, host), addrs, ports)
				if err != nil {
					dnsErr, isDNS := errors.AsType[*net.DNSError](err)
					add(candidate{name: host, failed: !isDNS || !dnsErr.IsTimeout})
				}
			})
		}
	}
}

// resolveAll resolves each name once and returns those that failed. It calls result for each.
func (c *Config) resolveAll(
	ctx context.Context, hosts []string, result func(string, []netip.Addr, error),
) []string {
	var mu sync.Mutex
	var failed []string
	names := make(chan string)
	var group sync.WaitGroup
	for range min(resolvers, len(hosts)) {
		group.Go(func() {
			for host := range names {
				addrs, err := c.resolve(ctx, host)
				result(host, addrs, err)
				if err == nil {
					continue
				}
				mu.Lock()
				failed = append(failed, host)
				mu.Unlock()
			}
		})
	}
	for _, host := range hosts {
		names <- host
	}
	close(names)
	group.Wait()
	return failed
}

// resolve returns the addresses of a name, which may itself be an address.
func (c *Config) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	addrs, err := c.Resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var unmapped []netip.Addr
	for _, a := range addrs {
		unmapped = append(unmapped, a.Unmap())
	}
	return unmapped, nil
}

// daemonDelay is how long a search waits for its other sources before it reads this host's
// connections. Linux then traverses its whole table, which takes 13 ms of processor time on a host
// with 24 GiB of memory, for each agent.
const daemonDelay = time.Second

// daemonPeers is the source of the remote addresses of connections between mpirun and its daemons,
// which use that port of mpirun's host. They work from this host, whatever names resolve to.
func daemonPeers(proc fs.FS, port uint16, ports []int) source {
	return func(ctx context.Context, add func(candidate)) {
		if proc == nil || !pause(ctx, daemonDelay) {
			return
		}
		for _, remote := range nettcp.Remotes(proc, port) {
			addAll(add, "", 1, []netip.Addr{remote}, ports)
		}
	}
}
