package etcd

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"rdzv/rdzv"
)

// The client leaves a member that does not answer. gRPC permits no shorter interval.
const (
	keepAliveInterval = 10 * time.Second
	keepAliveTimeout  = 3 * time.Second
)

// hostAlive makes the kernel close the connection to a member whose host is gone 4 s after it has
// received the last packet: gRPC sets TCP_USER_TIMEOUT to keepAliveTimeout (Linux, tcp(7)).
var hostAlive = net.KeepAliveConfig{Enable: true, Idle: keepAliveTimeout, Interval: time.Second}

// The time between two attempts.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second / 2
)

// How long a connection to a member may take, and how long the cluster may take to answer.
const (
	connectTimeout = 3 * time.Second
	clusterTimeout = 10 * time.Second
)

var connectParams = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay: firstPause, Multiplier: 1.5, Jitter: 0.2, MaxDelay: maxPause,
	},
	MinConnectTimeout: connectTimeout,
}

// Dial returns a client of a cluster that has accepted this client, and lets it read and write its
// keys. Connected is called with each connection that the client makes, and may be nil.
//
// As long as members may become available Dial tries again until ctx ends; failed is called with
// each reason, never twice at a time. If that cannot help, or ctx has ended, the error is an
// *[UnavailableError].
func (c Cluster) Dial(
	ctx context.Context, failed func(*UnavailableError), connected func(net.Conn),
) (*clientv3.Client, error) {
	client, err := c.client(connected)
	if err != nil {
		return nil, err
	}
	var last error
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := c.ask(ctx, client)
		switch {
		case err == nil:
			return client, nil
		case ctx.Err() != nil:
			client.Close()
			return nil, &UnavailableError{c, cmp.Or(last, err), context.Cause(ctx)}
		case permanent(err):
			client.Close()
			return nil, &UnavailableError{c, err, nil}
		}
		last = err
		failed(&UnavailableError{c, err, nil})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// client connects to all members, and logs in when it is used.
func (c Cluster) client(connected func(net.Conn)) (*clientv3.Client, error) {
	secure, err := c.tls()
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, addr string) (net.Conn, error) { // without a proxy
		conn, err := (&net.Dialer{KeepAliveConfig: hostAlive}).DialContext(ctx, "tcp", addr)
		if err == nil && connected != nil {
			connected(conn)
		}
		return conn, err
	}
	return clientv3.New(clientv3.Config{
		Endpoints: c.URLs, TLS: secure,
		DialKeepAliveTime: keepAliveInterval, DialKeepAliveTimeout: keepAliveTimeout,
		Logger: zap.NewNop(),
		DialOptions: append(newLogin(c.User, c.Password).dialOptions(),
			grpc.WithConnectParams(connectParams), grpc.WithContextDialer(dial)),
	})
}

// ask makes sure that the cluster has a quorum, accepts the password, and lets this client read and
// write its keys, by a transaction that changes nothing: etcd checks the permissions of all its
// branches. Without a connection it fails at once, and does not wait for one as client does.
func (c Cluster) ask(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeoutCause(ctx, clusterTimeout,
		fmt.Errorf("no answer within %v", clusterTimeout))
	defer cancel()
	root := c.prefix() + rdzv.Root
	keys, all := root+"/", clientv3.WithPrefix()
	kv := clientv3.NewKVFromKVClient(etcdserverpb.NewKVClient(client.ActiveConnection()), nil)
	_, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.Version(root), "<", 0)).
		Then(clientv3.OpPut(root, ""), clientv3.OpDelete(keys, all)).
		Else(clientv3.OpGet(keys, all, clientv3.WithCountOnly())).
		Commit()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (c Cluster) prefix() string { return cmp.Or(c.Prefix, rdzv.DefaultPrefix) }
