// Package lease keeps a lease of an etcd cluster alive.
package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/internal/boottime"
)

// Errors of Keep.
var (
	ErrExpired = errors.New("the lease has expired or was revoked")
	ErrRevoked = errors.New("the store has revoked the lease, although it was renewed in time")
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
// store says that there is no such lease, or ErrRevoked if the last renewal that was answered was
// sent less than the TTL before: a leader of the cluster that was frozen revokes leases when it
// continues. It returns ErrSilent when that renewal was sent more than limit ago. The limit may be
// longer than the TTL: a cluster without a quorum does not revoke leases, and extends them when it
// has one again.
//
// A process that was itself stopped asks the store again, for as long as limit: its lease may exist
// if the whole job, or the cluster, was stopped too.
//
// renewed is called with the time at which each renewal that was answered was sent, by package
// boottime: the store keeps the lease for its TTL from then on at least. It must return soon. What
// Keep receives from doubts, which may be nil, says that a key of the lease is gone: then it
// returns as if the lease were.
func Keep(
	ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, ttl, limit time.Duration,
	renewed func(sent time.Duration), doubts <-chan struct{},
) error {
	ctx, cancel := context.WithCancel(ctx)
	r := &renewer{client: client, id: id, ttl: ttl, answers: make(chan answer)}
	defer r.asking.Wait()
	defer cancel()
	r.ask(ctx, 1)
	silence := newSilence(limit)
	late := time.NewTimer(renewedWithin(ttl))
	defer late.Stop()
	answered := boottime.Now()
	for tries := 0; ; {
		select {
		case <-doubts:
			return expiry(answered, limit)
		case a := <-r.answers:
			if !a.renewed && expired(ctx, client, id, ttl/6) {
				return expiry(answered, limit)
			}
			if !a.renewed {
				r.ask(ctx, 1)
				continue
			}
			answered = max(answered, a.sent)
			silence.since = max(silence.since, a.sent)
			renewed(a.sent)
			r.stopBut(a.by)
			late.Reset(renewedWithin(ttl))
			tries = 0
		case <-late.C: // one renewal is missing
			tries++
			late.Reset(r.askAgain(ctx, ttl, tries))
		case <-silence.next():
			if silence.over() {
				return fmt.Errorf("%w for %v", ErrSilent, limit)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// silence is how long the store has not answered.
type silence struct {
	limit   time.Duration
	since   time.Duration // this and the next one by package boottime
	checkAt time.Duration
	check   <-chan time.Time // nil until next is called
}

// steps is the number of checks per limit.
const steps = 4

func newSilence(limit time.Duration) *silence {
	return &silence{limit: limit, since: boottime.Now()}
}

// next delivers when over is to be called.
func (s *silence) next() <-chan time.Time {
	if s.check == nil {
		now := boottime.Now()
		wait := max(0, min(s.limit/steps, s.since+s.limit-now))
		s.checkAt, s.check = now+wait, time.After(wait)
	}
	return s.check
}

// over tells whether the limit has passed. A check that is late by more than a step shows that this
// process was stopped; then the time counts again from the beginning.
func (s *silence) over() bool {
	now := boottime.Now()
	if s.check = nil; now-s.checkAt > s.limit/steps {
		s.since = now
	}
	return now-s.since >= s.limit
}

// expiry is why there is no lease any more for which a renewal was answered that was sent at a
// time. Within the limit the process may have the lease again: a cluster that had no quorum expires
// leases before their owners reach it.
func expiry(answered, limit time.Duration) error {
	if boottime.Now()-answered < limit {
		return ErrRevoked
	}
	return ErrExpired
}

// Restore grants a lease again that was revoked, under the same ID. Its keys are gone.
func Restore(
	ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, ttl time.Duration,
) error {
	request := &pb.LeaseGrantRequest{ID: int64(id), TTL: Seconds(ttl)}
	_, err := clientv3.RetryLeaseClient(client).LeaseGrant(ctx, request)
	if err = clientv3.ContextError(ctx, err); errors.Is(err, rpctypes.ErrLeaseExist) {
		return nil // an earlier try succeeded, but its answer was lost
	}
	return err
}

// renewedWithin is the longest time between two renewals that are not late: one is requested after
// a third of the TTL.
func renewedWithin(ttl time.Duration) time.Duration { return ttl * 3 / 5 }

// renewer asks for renewals through streams of its own, because a client's own lessor asks the same
// member of the cluster until the connection breaks, which that to a frozen or disconnected host
// does not, and does not tell when a request was sent. A new stream is to another member. It is not
// closed before one has answered: to open it may take long, if the client has to log in with a
// password first.
type renewer struct {
	client  *clientv3.Client
	id      clientv3.LeaseID
	ttl     time.Duration
	asking  sync.WaitGroup
	streams []*stream
	answers chan answer
}

type stream struct{ cancel context.CancelFunc }

// answer is that to a request for a renewal, three times per TTL.
type answer struct {
	by      *stream
	sent    time.Duration // when the request was sent, by package boottime
	renewed bool          // otherwise there is no such lease
}

// reopenAfter is how long after a stream has broken it is opened again, as in a client's lessor.
const reopenAfter = 500 * time.Millisecond

// ask opens n streams.
func (r *renewer) ask(ctx context.Context, n int) {
	for range n {
		ctx, cancel := context.WithCancel(ctx)
		s := &stream{cancel}
		r.streams = append(r.streams, s)
		r.asking.Go(func() {
			for r.renew(ctx, s) && sleep(ctx, reopenAfter) {
			}
		})
	}
}

// renew requests renewals through a stream until that breaks, or until there is no such lease. It
// reports whether the stream is to be opened again.
func (r *renewer) renew(ctx context.Context, s *stream) (again bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests, err := clientv3.RetryLeaseClient(r.client).LeaseKeepAlive(ctx)
	for err == nil {
		a := answer{by: s, sent: boottime.Now()}
		var got *pb.LeaseKeepAliveResponse
		err = requests.Send(&pb.LeaseKeepAliveRequest{ID: int64(r.id)})
		if err == nil || err == io.EOF { // the reason is that of Recv
			got, err = requests.Recv()
		}
		if err != nil {
			break
		}
		a.renewed = got.TTL > 0
		select {
		case r.answers <- a:
		case <-ctx.Done():
			return false
		}
		if !a.renewed || !sleep(ctx, a.sent+r.ttl/3-boottime.Now()) {
			return false
		}
	}
	return ctx.Err() == nil
}

// sleep waits and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// askAgain asks for a renewal that is late, and returns when to do that again. The lease lives for
// two fifths of its TTL at least, in which the cluster may elect a leader: a member that is asked
// meanwhile answers up to 1 s later, or not for 7 s if it asks the leader before. A cluster that
// needs longer extends the lease then, so that all members are asked again, but less often.
func (r *renewer) askAgain(ctx context.Context, ttl time.Duration, tries int) time.Duration {
	members := len(r.client.Endpoints())
	if tries == 1 {
		r.ask(ctx, 1)
		return ttl / 8
	}
	r.stopOldest(len(r.streams) - members)
	r.ask(ctx, members)
	if tries <= 4 {
		return ttl / 8
	}
	return min(time.Duration(tries-3)*ttl/4, ttl)
}

// stopBut closes all streams but one.
func (r *renewer) stopBut(s *stream) {
	for _, other := range r.streams {
		if other != s {
			other.cancel()
		}
	}
	r.streams = nil
	if s != nil {
		r.streams = []*stream{s}
	}
}

// stopOldest closes the n streams that were opened first.
func (r *renewer) stopOldest(n int) {
	for ; n > 0; n-- {
		r.streams[0].cancel()
		r.streams = r.streams[1:]
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
