package etcd

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// slowResolver is how long resolvers may take before it is reported that they have not answered.
	// They give up after 5 s and more (resolv.conf(5)), probeTimeout after 3 s.
	slowResolver = time.Second
	resolverHint = "check the DNS servers in /etc/resolv.conf"
)

// watchNames calls failed after slowResolver if lookup has returned for no member by then. Stop
// ends that, and failed is not called any more.
func (c Cluster) watchNames(
	ctx context.Context, lookup func(context.Context, string) error, failed func(*UnavailableError),
) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	known := make(chan struct{}, len(c.URLs))
	answers := make([]Answer, len(c.URLs))
	for i, u := range c.URLs {
		name, _, _ := net.SplitHostPort(hostOf(u))
		answers[i] = unanswered(u, name)
		watching.Go(func() {
			_ = lookup(ctx, name) // whether it is known is said by who connects to it
			known <- struct{}{}
		})
	}
	watching.Go(func() {
		select {
		case <-time.After(slowResolver):
			failed(&UnavailableError{Answers: answers})
		case <-known:
		case <-ctx.Done():
		}
	})
	return func() { cancel(); watching.Wait() }
}

// unanswered returns the Answer that watchNames reports for the member with URL u, whose host is
// name.
func unanswered(u, name string) Answer {
	text := fmt.Sprintf("the resolver has not answered for %q", name)
	return Answer{URL: u, Text: text, hint: resolverHint}
}

func lookup(ctx context.Context, name string) error {
	_, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	return err
}
