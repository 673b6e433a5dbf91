package nodecheck

import (
	"context"
	"sync"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/peers"
)

// Measure measures the connections to other nodes, until ctx ends: then it returns nil.
func Measure(ctx context.Context, key peers.Key, to []rdzv.Endpoint) []rdzv.Link {
	client := peers.NewClient(key, time.Now)
	links := make([]rdzv.Link, len(to))
	var wg sync.WaitGroup
	for i, to := range to {
		wg.Go(func() {
			measured, err := client.Measure(ctx, to.Addr, to.ID)
			links[i] = rdzv.Link{
				To: to.ID, Addr: to.Addr, RoundTrip: measured.RoundTrip, Offset: measured.Offset,
			}
			if err != nil {
				links[i].Error = err.Error()
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return links
}
