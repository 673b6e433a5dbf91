package etcd

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

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

var connectParams = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay: firstPause, Multiplier: 1.5, Jitter: 0.2, MaxDelay: maxPause,
	},
	MinConnectTimeout: probeTimeout,
}

// Dial returns a client of a cluster that has accepted this client, and lets it read and write its
// keys. Connected is called with each connection that the client makes, and may be nil.
//
// As long as members may become available Dial tries again until ctx ends; failed is called with
// what they answer, also while none of their names has been resolved, and never twice at a time. If
// that cannot help, or ctx has ended, the error is an *[UnavailableError].
func (c Cluster) Dial(
	ctx context.Context, failed func(*UnavailableError), connected func(net.Conn),
) (*clientv3.Client, error) {
	secure, err := c.tls()
	if err != nil {
		return nil, err
	}
	d := &dialer{
		prober: prober{c, secure}, login: newLogin(c.User, c.Password), connected: connected,
	}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		stop := c.watchNames(ctx, lookup, failed)
		client, answers := d.try(ctx)
		stop()
		if client != nil {
			return client, nil
		}
		unavailable := &UnavailableError{Answers: answers}
		if ctx.Err() == nil && final(answers) {
			return nil, unavailable
		}
		if ctx.Err() == nil {
			failed(unavailable)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			unavailable.Cause = context.Cause(ctx)
			return nil, unavailable
		}
	}
}

type dialer struct {
	prober
	login     *login
	connected func(net.Conn)
}

// try returns a client if a member can be used, otherwise what the members answer.
func (d *dialer) try(ctx context.Context) (*clientv3.Client, []Answer) {
	answers := d.probeAll(ctx)
	for _, a := range answers {
		if a.Text != "" {
			continue
		}
		client, err := d.client(ctx)
		if err == nil {
			if err = d.ask(ctx, client); err == nil {
				return client, nil
			}
			client.Close()
		}
		return nil, []Answer{d.refusal(a.URL, err)}
	}
	return nil, answers
}

// probeAll returns what the members answer, or one answer without a text as soon as a member can be
// used.
func (d *dialer) probeAll(ctx context.Context) []Answer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var probing sync.WaitGroup
	defer probing.Wait()
	found := make(chan Answer, len(d.URLs))
	for _, u := range d.URLs {
		probing.Go(func() { found <- d.probe(ctx, u) })
	}
	answers := make([]Answer, 0, len(d.URLs))
	for range d.URLs {
		a := <-found
		if a.Text == "" {
			cancel()
			return []Answer{a}
		}
		answers = append(answers, a)
	}
	return answers
}

// client connects to all members, and logs in when it is used.
func (d *dialer) client(ctx context.Context) (*clientv3.Client, error) {
	live, cancel := context.WithCancel(context.Background()) // as long as the client
	defer context.AfterFunc(ctx, cancel)()
	client, err := clientv3.New(clientv3.Config{
		Context: live, Endpoints: d.URLs, TLS: d.tls, DialTimeout: clusterTimeout,
		DialKeepAliveTime: keepAliveInterval, DialKeepAliveTimeout: keepAliveTimeout,
		Logger: zap.NewNop(),
		DialOptions: append(d.login.dialOptions(),
			grpc.WithConnectParams(connectParams), grpc.WithContextDialer(d.dial)),
	})
	if err != nil {
		cancel()
		return nil, err
	}
	return client, nil
}

// dial makes a connection of the client, without a proxy.
func (d *dialer) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{KeepAliveConfig: hostAlive}).DialContext(ctx, "tcp", addr)
	if err == nil && d.connected != nil {
		d.connected(conn)
	}
	return conn, err
}

// ask makes sure that the cluster has a quorum, accepts the password, and lets this client read and
// write its keys, by a transaction that changes nothing: etcd checks the permissions of all its
// branches.
func (d *dialer) ask(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeoutCause(ctx, clusterTimeout, errNoQuorum)
	defer cancel()
	root := cmp.Or(d.Prefix, rdzv.DefaultPrefix) + rdzv.Root
	keys, all := root+"/", clientv3.WithPrefix()
	_, err := client.Txn(ctx).If(clientv3.Compare(clientv3.Version(root), "<", 0)).
		Then(clientv3.OpPut(root, ""), clientv3.OpDelete(keys, all)).
		Else(clientv3.OpGet(keys, all, clientv3.WithCountOnly())).
		Commit()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}
