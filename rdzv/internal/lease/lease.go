// Package lease keeps a lease of an etcd cluster alive.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Errors of Keep.
var (
	ErrExpired = errors.New("the lease has expired or was revoked")
	ErrSilent  = errors.New("the store has not answered")
)

// Seconds is the TTL of etcd for a duration, rounded up.
func Seconds(ttl time.Duration) int64 { return int64((ttl + time.Second - 1) / time.Second) }

// Ends waits until a lease has expired or was revoked. It returns false as soon as the lease has
// been renewed: more of it is left than there would be. waits is called once, with the longest time
// that this takes.
func Ends(
	ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, waits func(time.Duration),
) (bool, error) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	var end time.Time // not later than this, unless it is renewed
	for {
		asked := time.Now()
		answer, err := client.TimeToLive(ctx, id)
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case err != nil:
			return false, fmt.Errorf("cannot ask for a lease: %w", err)
		case answer.TTL < 0:
			return true, nil
		}
		left := time.Duration(answer.TTL) * time.Second // rounded down; 0 also until it is revoked
		switch {
		case end.IsZero():
			end = time.Now().Add(left + time.Second)
			waits(left)
		case left > 0 && !asked.Add(left).Before(end):
			return false, nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// pollInterval is how often Ends asks: etcd counts in seconds.
const pollInterval = 500 * time.Millisecond

// Keep keeps a lease alive until ctx ends, and returns ctx's cause. It returns ErrExpired when the
// store says that there is no such lease, and ErrSilent when it was not renewed for limit. The
// limit may be longer than the TTL: a cluster without a quorum does not revoke leases, and extends
// them when it has one again.
func Keep(
	ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, ttl, limit time.Duration,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	k := &keeper{client: client, id: id, answers: make(chan answer)}
	defer k.asking.Wait()
	defer cancel(nil)
	silence := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%w for %v", ErrSilent, limit)) })
	defer silence.Stop()
	k.ask(ctx, 1)
	late := time.NewTimer(renewedWithin(ttl))
	defer late.Stop()
	for tries := 0; ; {
		select {
		case a := <-k.answers:
			if !a.renewed && expired(ctx, client, id, ttl/6) {
				return ErrExpired
			}
			if !a.renewed {
				k.ask(ctx, 1)
				continue
			}
			silence.Reset(limit)
			k.stopBut(a.by)
			late.Reset(renewedWithin(ttl))
			tries = 0
		case <-late.C: // one renewal is missing
			tries++
			late.Reset(k.askAgain(ctx, ttl, tries))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// renewedWithin is the longest time between two renewals that are not late: a client asks for one
// after a third of the TTL, rounded up to 500 ms.
func renewedWithin(ttl time.Duration) time.Duration { return ttl * 3 / 5 }

// keeper asks for renewals through streams of its own, because a client's own lessor asks the same
// member of the cluster until the connection breaks, which that to a frozen or disconnected host
// does not. A new stream is to another member. It is not closed before one has answered: to open it
// may take long, if the client has to log in with a password first.
type keeper struct {
	client  *clientv3.Client
	id      clientv3.LeaseID
	asking  sync.WaitGroup
	streams []*stream
	answers chan answer
}

type stream struct{ cancel context.CancelFunc }

// answer is that to a request for a renewal, three times per TTL. Without a renewal the client
// considers the lease expired, perhaps because this process was stopped.
type answer struct {
	by      *stream
	renewed bool
}

// ask opens n streams.
func (k *keeper) ask(ctx context.Context, n int) {
	for range n {
		ctx, cancel := context.WithCancel(ctx)
		s := &stream{cancel}
		k.streams = append(k.streams, s)
		k.asking.Go(func() {
			lessor := clientv3.NewLease(k.client)
			defer lessor.Close()
			renewals, _ := lessor.KeepAlive(ctx, k.id) // closed if there is an error
			for renewed := true; renewed; {
				_, renewed = <-renewals
				select {
				case k.answers <- answer{s, renewed}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// askAgain asks for a renewal that is late, and returns when to do that again. The lease lives for
// two fifths of its TTL at least, in which the cluster may elect a leader: a member that is asked
// meanwhile answers up to 1 s later, or not for 7 s if it asks the leader before.
func (k *keeper) askAgain(ctx context.Context, ttl time.Duration, tries int) time.Duration {
	switch members := len(k.client.Endpoints()); {
	case tries == 1:
		k.ask(ctx, 1)
	case tries <= 4:
		k.stopOldest(len(k.streams) - members)
		k.ask(ctx, members)
	default: // it may have expired
		k.stopOldest(1)
		k.ask(ctx, 1)
		return min(time.Duration(tries-3)*ttl/4, ttl)
	}
	return ttl / 8
}

// stopBut closes all streams but one.
func (k *keeper) stopBut(s *stream) {
	for _, other := range k.streams {
		if other != s {
			other.cancel()
		}
	}
	k.streams = nil
	if s != nil {
		k.streams = []*stream{s}
	}
}

// stopOldest closes the n streams that were opened first.
func (k *keeper) stopOldest(n int) {
	for ; n > 0; n-- {
		k.streams[0].cancel()
		k.streams = k.streams[1:]
	}
}

// expired reports whether the store says, within the limit, that there is no such lease.
func expired(
	ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, limit time.Duration,
) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := client.TimeToLive(ctx, id)
	return err == nil && answer.TTL < 0 // 0 is less than a second
}
