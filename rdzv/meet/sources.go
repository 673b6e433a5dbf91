package meet

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdzv/internal/procfs/nettcp"
)

// A port that comes later in the sequence is as likely as the next address with the first port: perPort addresses later.
const perPort = 4

// offerAll gives each address with each port.
func offerAll(give func(offer), name string, likely int, addrs []netip.Addr, ports []int) {
	for i, a := range addrs {
		for j, port := range ports {
			give(offer{netip.AddrPortFrom(a, uint16(port)), name, likely + i + perPort*j, j})
		}
	}
}

// fixed offers addresses that are known.
func fixed(name string, likely int, addrs []netip.Addr, ports []int) source {
	return func(_ context.Context, give func(offer)) { offerAll(give, name, likely, addrs, ports) }
}

// nearby offers this host's own addresses: loopback when all agents are here, else those that a store would listen on.
func (s *session) nearby(ports []int) source {
	return func(_ context.Context, give func(offer)) {
		addrs, err := s.listenAddrs()
		if err == nil {
			offerAll(give, "this host", 0, addrs, ports)
		}
	}
}

// Names are looked up by a few at a time, and again and again those that are not known yet: a host may come up after us.
const (
	resolvers    = 8
	resolveEvery = 2 * time.Second
)

// names offers the addresses of hosts, the first being the most likely.
func (s *session) names(hosts []string, likely int, ports []int) source {
	return func(ctx context.Context, give func(offer)) {
		for unknown := hosts; len(unknown) > 0 && ctx.Err() == nil; pause(ctx, resolveEvery) {
			unknown = s.resolve(ctx, unknown, func(host string, addrs []netip.Addr) {
				offerAll(give, host, likely+slices.Index(hosts, host), addrs, ports)
			})
		}
	}
}

// resolve looks up each name once, and returns those that failed.
func (s *session) resolve(ctx context.Context, hosts []string, got func(string, []netip.Addr)) []string {
	var mu sync.Mutex
	var failed []string
	todo := make(chan string)
	var group sync.WaitGroup
	for range min(resolvers, len(hosts)) {
		group.Go(func() {
			for host := range todo {
				addrs, err := s.lookup(ctx, host)
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
func (s *session) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	addrs, err := s.Resolve(ctx, host)
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, err
}

// seenAfter is when a search that has found nothing looks at this host's connections. The kernel walks all of its hash table
// for that, 13 ms of processor time with 24 GiB of memory, and each agent of the host would have it do so.
const seenAfter = time.Second

// seen offers the other ends of this host's connections of the daemon with that port: on the other hosts mpirun's, by an address
// that works from here, whatever the names say; on mpirun's host those of the other daemons.
func (s *session) seen(daemon uint16, ports []int) source {
	return func(ctx context.Context, give func(offer)) {
		if s.Proc == nil || !pause(ctx, seenAfter) {
			return
		}
		for _, remote := range nettcp.Remotes(s.Proc, daemon) {
			offerAll(give, "", 1, []netip.Addr{remote}, ports)
		}
	}
}

// pause waits for d, and reports whether ctx lasted for so long.
func pause(ctx context.Context, d time.Duration) (lasts bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
