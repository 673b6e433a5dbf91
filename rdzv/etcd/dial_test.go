package etcd_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"rdzv/internal/etcdtest"
	"rdzv/rdzv/etcd"
)

// testTimeout bounds each test.
const testTimeout = time.Minute

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// serve starts an etcd and returns its URL.
func serve(t *testing.T, scheme string, change func(*embed.Config)) string {
	t.Helper()
	e, url, err := etcdtest.Start(within(t), t.TempDir(), scheme, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return url
}

func newAuthority(t *testing.T) *etcdtest.Authority {
	t.Helper()
	a, err := etcdtest.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sign(
	t *testing.T, a *etcdtest.Authority, name string, valid time.Duration,
) (cert, key string) {
	t.Helper()
	cert, key, err := a.Sign(name, valid)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen listens at a port until the test ends.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func grpcServer(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	s, l := grpc.NewServer(), listen(t)
	register(s)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return "http://" + l.Addr().String()
}

func other(scheme, url string) string {
	_, host, _ := strings.Cut(url, "://")
	return scheme + "://" + host
}

// What a user reads if the cluster cannot be used. All of these servers are real ones.
func TestUnavailable(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	serverCert, serverKey := sign(t, ours, "server", time.Hour)
	plain, users := serve(t, "http", nil), serve(t, "http", nil)
	if err := etcdtest.AddUsers(within(t), users); err != nil {
		t.Fatal(err)
	}
	tls := serve(t, "https", func(c *embed.Config) {
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = serverCert, serverKey
	})
	mutual := serve(t, "https", func(c *embed.Config) {
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = serverCert, serverKey
		c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = ours.File(), true
	})
	expired, expiredKey := sign(t, ours, "expired", -time.Hour)
	foreign, foreignKey := sign(t, theirs, "foreign", time.Hour)
	good, goodKey := sign(t, ours, "good", time.Hour)
	free := listen(t)
	free.Close()
	silent := listen(t)
	ca, nobody := ours.File(), "http://"+free.Addr().String()

	const denied = "etcdserver: permission denied\n" +
		"etcdctl role grant-permission ROLE readwrite --prefix "
	for _, c := range []struct {
		name    string
		cluster etcd.Cluster
		url     string
		want    string // "" if it can be used
		waits   bool   // until the cluster may be available
	}{
		{"plain", etcd.Cluster{}, plain, "", false},
		{"TLS", etcd.Cluster{CA: ca}, tls, "", false},
		{"mutual TLS", etcd.Cluster{CA: ca, Cert: good, Key: goodKey}, mutual, "", false},
		{"user", etcd.Cluster{User: "alice", Password: "secret"}, users, "", false},
		{"user of an etcd without users", etcd.Cluster{User: "a", Password: "b"}, plain, "", false},
		{"wrong password", etcd.Cluster{User: "alice", Password: "sesame"}, users,
			"etcdserver: authentication failed, invalid user ID or password\ncheck ", false},
		{"no such user", etcd.Cluster{User: "carol", Password: "sesame"}, users,
			"etcdserver: authentication failed, invalid user ID or password", false},
		{"no user", etcd.Cluster{}, users,
			"etcdserver: user name is empty\nset RDZV_STORE_USER ", false},
		{"no permission", etcd.Cluster{User: "bob", Password: "secret"}, users,
			denied + "/rdzv/, ", false},
		{"other prefix", etcd.Cluster{User: "alice", Password: "secret", Prefix: "/jobs/"}, users,
			denied + "/jobs/, ", false},
		{"expired client certificate", etcd.Cluster{CA: ca, Cert: expired, Key: expiredKey}, mutual,
			"remote error: tls: expired certificate\n", false},
		{"client certificate of another CA", etcd.Cluster{CA: ca, Cert: foreign, Key: foreignKey},
			mutual, "remote error: tls: unknown certificate authority\n", false},
		{"no client certificate", etcd.Cluster{CA: ca}, mutual,
			"remote error: tls: certificate required\ngive --store-cert and ", false},
		{"wrong CA", etcd.Cluster{CA: theirs.File()}, tls,
			"x509: certificate signed by unknown authority ", false},
		{"no CA", etcd.Cluster{}, tls,
			"x509: certificate signed by unknown authority\nname the file with the CA ", false},
		{"another name", etcd.Cluster{CA: ca}, strings.Replace(tls, "127.0.0.1", "0.0.0.0", 1),
			"certificate is valid for 127.0.0.1, not 0.0.0.0", false},
		{"plain HTTP to a TLS port", etcd.Cluster{}, other("http", tls),
			" (does it use https://?)\n", true},
		{"plain HTTP to a mutual TLS port", etcd.Cluster{}, other("http", mutual),
			" (does it use https://?)\n", true},
		{"TLS to a plain port", etcd.Cluster{CA: ca}, other("https", plain),
			" (does it use http://?)\n", true},
		{"nothing", etcd.Cluster{}, nobody, "connect: connection refused\nis the cluster running", true},
		{"no such host", etcd.Cluster{}, "http://etcd.invalid:2379", "no such host\n",
			true},
		{"silent TLS", etcd.Cluster{}, "https://" + silent.Addr().String(),
			"context deadline exceeded\n", true},
		{"silent", etcd.Cluster{}, "http://" + silent.Addr().String(),
			"error reading server preface: ", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.cluster.URLs = []string{c.url}
			if err := c.cluster.Check(); err != nil {
				t.Fatal(err)
			}
			text, waited := dial(t, c.cluster, c.waits)
			begin := `cannot connect to etcd "` + c.url + `": `
			if !strings.Contains(text, c.want) || (text == "") != (c.want == "") || waited != c.waits ||
				text != "" && !strings.HasPrefix(text, begin) {
				t.Errorf("%q, waited: %t; want %q, %t", text, waited, c.want, c.waits)
			}
			if p := c.cluster.Password; p != "" && strings.Contains(text, p) {
				t.Errorf("%q has the password", text)
			}
		})
	}
}

// dial dials until it succeeds or that cannot help, with waits until it has failed once, and returns
// the error and its hint. That of a certificate may be known only after some attempts: the
// connection may be closed before the reason was read.
func dial(t *testing.T, c etcd.Cluster, waits bool) (text string, waited bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	client, err := c.Dial(ctx, func(e *etcd.UnavailableError) {
		if !waits {
			t.Log(e)
			return
		}
		waited, text = true, e.Error()+"\n"+e.Hint()
		cancel()
	}, nil)
	if err == nil {
		client.Close()
		return "", waited
	}
	unavailable, ok := errors.AsType[*etcd.UnavailableError](err)
	if !ok {
		t.Fatalf("%T %v", err, err)
	}
	if !waited {
		text = unavailable.Error() + "\n" + unavailable.Hint()
	}
	return text, waited
}

// One member is enough, wherever it is in the list.
func TestSomeMembersAvailable(t *testing.T) {
	free := listen(t)
	free.Close()
	silent := "http://" + listen(t).Addr().String()
	nobody, good := "http://"+free.Addr().String(), serve(t, "http", nil)
	for _, urls := range [][]string{{nobody, good}, {silent, good, nobody}, {good, silent}} {
		var connected atomic.Int32
		client, err := etcd.Cluster{URLs: urls}.Dial(within(t), func(e *etcd.UnavailableError) {
			t.Errorf("waits: %v", e)
		}, func(net.Conn) { connected.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		if connected.Load() == 0 {
			t.Errorf("%q: no connection was reported", urls)
		}
		client.Close()
	}
}
