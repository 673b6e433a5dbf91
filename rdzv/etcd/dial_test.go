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
			`wrong password of user "alice", or no such user`, false},
		{"no such user", etcd.Cluster{User: "carol", Password: "sesame"}, users,
			`wrong password of user "carol", or no such user`, false},
		{"no user", etcd.Cluster{}, users, "it requires a user, and does not know this client", false},
		{"no permission", etcd.Cluster{User: "bob", Password: "secret"}, users,
			`user "bob" may not read and write the keys with the prefix "/rdzv/"`, false},
		{"other prefix", etcd.Cluster{User: "alice", Password: "secret", Prefix: "/jobs/"}, users,
			`user "alice" may not read and write the keys with the prefix "/jobs/"`, false},
		{"expired client certificate", etcd.Cluster{CA: ca, Cert: expired, Key: expiredKey}, mutual,
			"it rejects the client certificate in \"" + expired + "\": expired certificate " +
				"(it was valid until ", false},
		{"client certificate of another CA", etcd.Cluster{CA: ca, Cert: foreign, Key: foreignKey},
			mutual, "it rejects the client certificate in \"" + foreign + "\": ", false},
		{"no client certificate", etcd.Cluster{CA: ca}, mutual, "it requires a client certificate",
			false},
		{"wrong CA", etcd.Cluster{CA: theirs.File()}, tls,
			"its certificate is not signed by the CA in \"" + theirs.File() + "\"", false},
		{"no CA", etcd.Cluster{}, tls, "its certificate is not signed by a CA that this host trusts",
			false},
		{"another name", etcd.Cluster{CA: ca}, strings.Replace(tls, "127.0.0.1", "0.0.0.0", 1),
			"certificate is valid for 127.0.0.1, not 0.0.0.0", false},
		{"plain HTTP to a TLS port", etcd.Cluster{}, other("http", tls), "it expects TLS", false},
		{"plain HTTP to a mutual TLS port", etcd.Cluster{}, other("http", mutual), "it expects TLS",
			false},
		{"TLS to a plain port", etcd.Cluster{CA: ca}, other("https", plain), "it does not use TLS",
			false},
		{"nothing", etcd.Cluster{}, nobody, "connection refused", true},
		{"no such host", etcd.Cluster{}, "http://etcd.invalid:2379", `"etcd.invalid" does not resolve`,
			true},
		{"silent TLS", etcd.Cluster{}, "https://" + silent.Addr().String(),
			"it accepts connections, but does not answer", true},
		{"silent", etcd.Cluster{}, "http://" + silent.Addr().String(),
			"it accepts connections, but does not answer", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.cluster.URLs = []string{c.url}
			if err := c.cluster.Check(); err != nil {
				t.Fatal(err)
			}
			text, waited := dial(t, c.cluster)
			if !strings.Contains(text, c.want) || (text == "") != (c.want == "") || waited != c.waits {
				t.Errorf("%q, waited: %t; want %q, %t", text, waited, c.want, c.waits)
			}
			if p := c.cluster.Password; p != "" && strings.Contains(text, p) {
				t.Errorf("%q has the password", text)
			}
		})
	}
}

// dial dials until it succeeds, or has waited once, and returns the error.
func dial(t *testing.T, c etcd.Cluster) (text string, waited bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	client, err := c.Dial(ctx, func(e *etcd.UnavailableError) {
		waited, text = true, e.Error()
		cancel()
	}, nil)
	if err == nil {
		client.Close()
		return "", waited
	}
	if u, ok := errors.AsType[*etcd.UnavailableError](err); !ok || len(u.Answers) == 0 {
		t.Errorf("%T %v", err, err)
	}
	if !waited {
		text = err.Error()
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
