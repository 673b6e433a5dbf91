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

// connectBackoff replaces gRPC's, whose first pause of a second would be most of
// the time that a job needs to start. A store is one process; 200 ms between two
// tries of an agent cost it nothing. A try may take long: to break it off while
// the store is busy with thousands of others makes it busier.
var connectBackoff = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 200 * time.Millisecond},
	MinConnectTimeout: 20 * time.Second,
}

// Dial returns a client of the store to which dial makes verified connections;
// it does not wait for one. Every connection is given up when the store is
// silent for longer than peerTimeout. The client opens one connection and carries
// etcd's calls, the watch and the presence stream over it.
func Dial(dial func(context.Context) (net.Conn, error), peerTimeout time.Duration) (*clientv3.Client, error) {
	dialLimited := func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return presence.LimitSilence(conn, peerTimeout), nil
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://rdzv.invalid:1"}, // never resolved: dialLimited dials
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(dialLimited),
			grpc.WithConnectParams(connectBackoff),
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
