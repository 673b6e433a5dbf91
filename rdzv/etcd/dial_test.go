package etcd_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
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

// old is the part of an old etcd that tells its version.
type old struct {
	etcdserverpb.UnimplementedMaintenanceServer
}

func (old) Status(context.Context, *etcdserverpb.StatusRequest) (
	*etcdserverpb.StatusResponse, error,
) {
	return &etcdserverpb.StatusResponse{Version: "3.3.25"}, nil
}

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

// banner is a service that writes a line to whoever connects, such as sshd.
func banner(t *testing.T) string {
	t.Helper()
	l := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func other(scheme, url string) string {
	_, host, _ := strings.Cut(url, "://")
	return scheme + "://" + host
}

// What a user reads if the cluster cannot be used. All of these servers are real ones, except an
// etcd that is too old.
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
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	webTLS := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(webTLS.Close)
	free := listen(t)
	free.Close()
	silent := listen(t)
	ssh := banner(t)
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
		{"a web server", etcd.Cluster{}, web.URL, "another service uses this port (HTTP)", false},
		{"TLS to a web server", etcd.Cluster{}, other("https", web.URL),
			"another service uses this port (HTTP)", false},
		{"a web server with TLS", etcd.Cluster{}, other("http", webTLS.URL), "it expects TLS", false},
		{"sshd", etcd.Cluster{}, "http://" + ssh, "another service uses this port", false},
		{"TLS to sshd", etcd.Cluster{}, "https://" + ssh, "another service uses this port", false},
		{"another gRPC service", etcd.Cluster{}, grpcServer(t, func(*grpc.Server) {}),
			"another service uses this port", false},
		{"old", etcd.Cluster{}, grpcServer(t, func(s *grpc.Server) {
			etcdserverpb.RegisterMaintenanceServer(s, old{})
		}), "it is etcd 3.3.25: 3.4 or later is required", false},
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

func TestAnswersOfSeveralMembers(t *testing.T) {
	e := &etcd.UnavailableError{Answers: []etcd.Answer{
		{URL: "http://a:2379", Text: "connection refused"},
		{URL: "http://b:2379", Text: "no answer"},
		{URL: "http://c:2379", Text: "connection refused"},
	}}
	want := "cannot use etcd at http://a:2379, http://c:2379: connection refused; " +
		"http://b:2379: no answer"
	if e.Error() != want {
		t.Errorf("%q, want %q", e.Error(), want)
	}
}
