package registration

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/presence"
)

// openStream opens the presence stream of an agent.
func openStream(
	ctx context.Context, conn *grpc.ClientConn, id string, limit time.Duration, lost func(),
) (*presence.Stream, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var limiter sync.WaitGroup
	limiter.Go(func() { limitConnecting(ctx, cancel, conn, limit) })
	defer limiter.Wait()
	defer cancel(nil)
	stream, err := presence.Open(ctx, conn, id, lost)
	if kv.Unavailable(err) {
		return nil, kv.Lost("cannot register: %v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot register in the store: %w", err)
	}
	return stream, nil
}

// limitConnecting cancels the registration if no connection is made within the limit after one has
// failed. It runs until ctx ends, because a connection can fail before the first request, and gRPC
// then makes another one.
func limitConnecting(
	ctx context.Context, cancel context.CancelCauseFunc, conn *grpc.ClientConn, limit time.Duration,
) {
	timedOut := kv.Lost("not connected within %v", limit)
	timer := time.AfterFunc(math.MaxInt64, func() { cancel(timedOut) })
	defer timer.Stop()
	failing := false // an attempt has failed, and the timer runs
	for state := conn.GetState(); ; state = conn.GetState() {
		switch {
		case state == connectivity.Ready:
			timer.Stop()
			failing = false
		case state == connectivity.TransientFailure && !failing:
			timer.Reset(limit)
			failing = true
		}
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}
