package meet

import (
	"context"
	"io/fs"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdzv/internal/procfs/nettcp"
)

// A port that comes later in the sequence is as likely as the next address with the first port:
// perPort addresses later.
const perPort = 4

// offerAll gives each address with each port.
func offerAll(give func(offer), name string, likely int, addrs []netip.Addr, ports []int) {
	for i, a := range addrs {
		for j, port := range ports {
			give(offer{netip.AddrPortFrom(a, uint16(port)), name, likely + i + perPort*j, j > 0})
		}
	}
}

// fixed offers addresses that are known.
func fixed(name string, likely int, addrs []netip.Addr, ports []int) source {
	return func(_ context.Context, give func(offer)) { offerAll(give, name, likely, addrs, ports) }
}

// nearby offers this host's own addresses: loopback when all agents are here, else those that a
// store would listen on.
func nearby(c *Config, ports []int) source {
	return func(_ context.Context, give func(offer)) {
		addrs, err := c.listenAddrs()
		if err == nil {
			offerAll(give, "this host", 0, addrs, ports)
		}
	}
}

// Names are looked up by a few at a time, and again and again those that are not known yet: a host
// may come up after us.
const (
	resolvers    = 8
	resolveEvery = 2 * time.Second
)

// A resolver gives the addresses of a name.
type resolver func(ctx context.Context, host string) ([]netip.Addr, error)

// names offers the addresses of hosts, the first being the most likely.
func names(r resolver, hosts []string, likely int, ports []int) source {
	return func(ctx context.Context, give func(offer)) {
		for unknown := hosts; len(unknown) > 0 && ctx.Err() == nil; pause(ctx, resolveEvery) {
			unknown = resolve(ctx, r, unknown, func(host string, addrs []netip.Addr) {
				offerAll(give, host, likely+slices.Index(hosts, host), addrs, ports)
			})
		}
	}
}

// resolve looks up each name once, and returns those that failed.
func resolve(ctx context.Context, r resolver, hosts []string, got func(string, []netip.Addr)) []string {
	var mu sync.Mutex
	var failed []string
	todo := make(chan string)
	var group sync.WaitGroup
	for range min(resolvers, len(hosts)) {
		group.Go(func() {
			for host := range todo {
				addrs, err := lookup(ctx, r, host)
				if err == nil {
					got(host, addrs)
					continue
				}
				mu.Lock()
				failed = append(failed, host)
				mu.Unlock()
			}
		})
	}
	for _, host := range hosts {
		todo <- host
	}
	close(todo)
	group.Wait()
	return failed
}

// lookup gives the addresses of a name, or the one that the name is.
func lookup(ctx context.Context, r resolver, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	addrs, err := r(ctx, host)
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, err
}

// seenAfter is when a search that has found nothing looks at this host's connections. The kernel
// walks all of its hash table for that, 13 ms of processor time with 24 GiB of memory, and each
// agent of the host would have it do so.
const seenAfter = time.Second

// seen offers the other ends of this host's connections of the daemon with that port: on the other
// hosts mpirun's, by an address that works from here, whatever the names say; on mpirun's host
// those of the other daemons.
func seen(proc fs.FS, daemon uint16, ports []int) source {
	return func(ctx context.Context, give func(offer)) {
		if proc == nil || !pause(ctx, seenAfter) {
			return
		}
		for _, remote := range nettcp.Remotes(proc, daemon) {
			offerAll(give, "", 1, []netip.Addr{remote}, ports)
		}
	}
}
