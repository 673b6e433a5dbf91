package rdzv

import (
	"context"
	"fmt"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"rdzv/rdzv/presence"
)

// connectParams replaces gRPC's default, whose first delay of 1 s is longer than the start
// of a job. An attempt has a long timeout, because aborting it would add load to a store
// that serves thousands of agents.
var connectParams = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 200 * time.Millisecond,
	},
	MinConnectTimeout: 20 * time.Second,
}

// Dial returns a client of the store to which dial makes verified connections. It does not
// wait for a connection. Calls, watch and presence stream share one, which is closed if
// nothing was received from the store for peerTimeout.
func Dial(
	dial func(context.Context) (net.Conn, error), peerTimeout time.Duration,
) (*clientv3.Client, error) {
	dialLimited := func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return presence.LimitSilence(conn, peerTimeout, peerTimeout+MaxLostGrace), nil
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://rdzv.invalid:1"}, // never resolved: dialLimited connects
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(dialLimited),
			grpc.WithConnectParams(connectParams),
			grpc.WithNoProxy(),
			grpc.WithInitialWindowSize(presence.Window),
			grpc.WithInitialConnWindowSize(presence.Window),
			grpc.WithReadBufferSize(presence.Buffer),
			grpc.WithWriteBufferSize(presence.Buffer),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of the store: %w", err)
	}
	return client, nil
}
