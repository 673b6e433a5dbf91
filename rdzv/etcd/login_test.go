package etcd_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"rdzv/internal/boottime"
	"rdzv/internal/etcdtest"
	"rdzv/rdzv/etcd"
	"rdzv/rdzv/internal/lease"
)

// A client logs in once, and again when its token has become invalid. Its streams go on then, and
// other watches can begin on that of the first.
func TestLogins(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []string{"simple", "jwt,sign-method=HS256,ttl=1h,priv-key=" + key} {
		kind, _, _ := strings.Cut(tokens, ",")
		t.Run(kind, func(t *testing.T) { testLogins(t, tokens) })
	}
}

func testLogins(t *testing.T, tokens string) {
	url := serve(t, "http", func(c *embed.Config) { c.AuthToken = tokens })
	if err := etcdtest.AddUsers(within(t), url); err != nil {
		t.Fatal(err)
	}
	before, ctx := logins(t, url), within(t)
	client := connect(t, etcd.Cluster{URLs: []string{url}, User: "alice", Password: "secret"})
	first := client.Watch(clientv3.WithRequireLeader(ctx), "/rdzv/first")
	renewals := keepLease(t, client)
	awaitRenewal(t, renewals, 0)
	put(t, client, "/rdzv/first", "1")
	awaitValue(t, first, "1")
	if n := logins(t, url) - before; n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
	refuseTokens(t, url)
	before = logins(t, url)
	awaitRenewal(t, renewals, boottime.Now())
	second := client.Watch(clientv3.WithRequireLeader(ctx), "/rdzv/second",
		clientv3.WithCreatedNotify())
	if created := <-second; !created.Created || created.Err() != nil {
		t.Fatalf("the second watch: %v", created.Err())
	}
	for key, watch := range map[string]clientv3.WatchChan{"first": first, "second": second} {
		put(t, client, "/rdzv/"+key, "2")
		awaitValue(t, watch, "2")
	}
	if n := logins(t, url) - before; n != 1 {
		t.Errorf("%d logins after the token has become invalid, want 1", n)
	}
	denied := <-client.Watch(clientv3.WithRequireLeader(ctx), "/other")
	if denied.Err() == nil {
		t.Error("a watch without permission succeeds")
	}
	put(t, client, "/rdzv/first", "3")
}

// Calls that need a token at the same time share one login, or two if the first takes long.
func TestCallsShareALogin(t *testing.T) {
	url := serve(t, "http", func(c *embed.Config) { c.AuthToken = "simple" })
	if err := etcdtest.AddUsers(within(t), url); err != nil {
		t.Fatal(err)
	}
	client := connect(t, etcd.Cluster{URLs: []string{url}, User: "alice", Password: "secret"})
	put(t, client, "/rdzv/key", "1")
	refuseTokens(t, url)
	before := logins(t, url)
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			if _, err := client.Put(within(t), "/rdzv/key", "2"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := logins(t, url) - before; n < 1 || n > 2 {
		t.Errorf("%d logins of 16 calls, want 1 or 2", n)
	}
}

// refuseTokens makes an etcd refuse the tokens of all logins of alice so far.
func refuseTokens(t *testing.T, url string) {
	t.Helper()
	root, err := clientv3.New(clientv3.Config{
		Endpoints: []string{url}, Username: "root", Password: "admin", Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := root.UserChangePassword(within(t), "alice", "secret"); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, c etcd.Cluster) *clientv3.Client {
	t.Helper()
	client, err := c.Dial(within(t), func(e *etcd.UnavailableError) { t.Log(e) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func put(t *testing.T, client *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := client.Put(within(t), key, value); err != nil {
		t.Fatal(err)
	}
}

// keepLease keeps a lease alive until the test ends, and returns when each renewal was requested.
func keepLease(t *testing.T, client *clientv3.Client) <-chan time.Duration {
	t.Helper()
	const ttl = 3 * time.Second
	granted, err := client.Grant(within(t), lease.Seconds(ttl))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(within(t))
	renewals := make(chan time.Duration, 100)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		defer close(renewals)
		renewed := func(sent time.Duration) { renewals <- sent }
		if err := lease.Keep(ctx, client, granted.ID, ttl, time.Minute, renewed, nil); ctx.Err() == nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); keeping.Wait() })
	return renewals
}

// awaitRenewal waits for an answer to a request that was sent later.
func awaitRenewal(t *testing.T, renewals <-chan time.Duration, later time.Duration) {
	t.Helper()
	for sent := range renewals {
		if sent > later {
			return
		}
	}
	t.Fatal("the lease was not renewed")
}

func awaitValue(t *testing.T, events clientv3.WatchChan, want string) {
	t.Helper()
	select {
	case r := <-events:
		if r.Err() != nil || len(r.Events) != 1 || string(r.Events[0].Kv.Value) != want {
			t.Fatalf("the watch delivers %+v, %v, want %q", r.Events, r.Err(), want)
		}
	case <-within(t).Done():
		t.Fatal("the watch delivers nothing")
	}
}

// logins is how many an etcd in this process has served.
func logins(t *testing.T, url string) (n int) {
	t.Helper()
	response, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "grpc_server_started_total") && strings.Contains(line, "Authenticate") {
			_, _ = fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &n)
			return n
		}
	}
	t.Fatal("the metrics of etcd have no number of logins")
	return 0
}

// forgetful is the part of an etcd that is needed for a login. It refuses the first token when it is
// used for a read, does not answer the second login, and accepts the third.
type forgetful struct {
	etcdserverpb.UnimplementedMaintenanceServer
	etcdserverpb.UnimplementedAuthServer
	etcdserverpb.UnimplementedKVServer
	logins atomic.Int32
	hangs  chan struct{}
}

func (*forgetful) Status(context.Context, *etcdserverpb.StatusRequest) (
	*etcdserverpb.StatusResponse, error,
) {
	return &etcdserverpb.StatusResponse{Version: "3.5.0"}, nil
}

func (*forgetful) Txn(context.Context, *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	return &etcdserverpb.TxnResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}

func (f *forgetful) Authenticate(ctx context.Context, _ *etcdserverpb.AuthenticateRequest) (
	*etcdserverpb.AuthenticateResponse, error,
) {
	n := f.logins.Add(1)
	if n == 2 {
		close(f.hangs)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &etcdserverpb.AuthenticateResponse{Token: fmt.Sprint("token", n)}, nil
}

func (*forgetful) Range(ctx context.Context, _ *etcdserverpb.RangeRequest) (
	*etcdserverpb.RangeResponse, error,
) {
	md, _ := metadata.FromIncomingContext(ctx)
	if sent := md.Get(rpctypes.TokenFieldNameGRPC); len(sent) != 1 || sent[0] != "token3" {
		return nil, rpctypes.ErrGRPCInvalidAuthToken
	}
	return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}

// A login that gets no answer, because its member is frozen, delays only its own call.
func TestLoginWithoutAnswer(t *testing.T) {
	f := &forgetful{hangs: make(chan struct{})}
	url := grpcServer(t, func(s *grpc.Server) {
		etcdserverpb.RegisterMaintenanceServer(s, f)
		etcdserverpb.RegisterAuthServer(s, f)
		etcdserverpb.RegisterKVServer(s, f)
	})
	client := connect(t, etcd.Cluster{URLs: []string{url}, User: "alice", Password: "secret"})
	ctx, cancel := context.WithCancel(within(t))
	first := make(chan error, 1)
	go func() {
		_, err := client.Get(ctx, "a")
		first <- err
	}()
	<-f.hangs
	for range 2 {
		if _, err := client.Get(within(t), "b"); err != nil {
			t.Error(err)
		}
	}
	if n := f.logins.Load(); n != 3 {
		t.Errorf("%d logins, want 3", n)
	}
	cancel()
	if err := <-first; err == nil {
		t.Error("a call without an answer to its login succeeds")
	}
}
