package repo

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"debug/buildinfo"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Workers of another module agree on a world through a cluster that requires client certificates
// and a user. Nothing of the job is left in it.
func TestEmbedCluster(t *testing.T) {
	program := buildExample(t, "embed-cluster")
	wantNoServer(t, program)
	c := startCluster(t)
	args := []string{"-endpoints", c.endpoint, "-cacert", c.file("ca.pem"),
		"-cert", c.file("client.pem"), "-key", c.file("client.key")}
	as := func(user string, more ...string) []string {
		return append(append([]string{}, args...), append(more, "-user", user)...)
	}

	stdout, stderr, code := runExample(t, program, as("trainer:secret")...)
	for _, rank := range []string{"rank 0 of 3: ", "rank 1 of 3: ", "rank 2 of 3: "} {
		if !strings.Contains(stdout, rank+"all workers succeeded\n") {
			t.Errorf("no %q in %q", rank, stdout)
		}
	}
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}

	_, stderr, code = runExample(t, program, as("trainer:secret", "-fail", "1")...)
	if strings.Count(stderr, " failed first: exit 3\n") != 3 || code != 1 {
		t.Errorf("a worker fails: exit code %d, stderr %q", code, stderr)
	}

	for _, wrong := range []struct{ user, want string }{
		{"trainer:wrong", "authentication failed"},
		{"guest:secret", "permission denied"},
	} {
		stdout, stderr, code := runExample(t, program, as(wrong.user)...)
		if code != 1 || !strings.Contains(stderr, wrong.want) || stdout != "" {
			t.Errorf("user %s: exit code %d, stderr %q", wrong.user, code, stderr)
		}
	}

	left, err := c.admin.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil || len(left.Kvs) > 0 {
		t.Errorf("keys left: %v, %v", left, err)
	}
}

// wantNoServer checks that package rdzv has brought only etcd's client into a program.
func wantNoServer(t *testing.T, program string) {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, "go.etcd.io/etcd/server") {
			t.Errorf("%s contains %s", filepath.Base(program), m.Path)
		}
	}
}

// authCluster is an etcd with TLS and users: trainer, who may use /rdzv/, and guest, who may not.
type authCluster struct {
	dir      string
	endpoint string
	admin    *clientv3.Client
}

func (c *authCluster) file(name string) string { return filepath.Join(c.dir, name) }

func startCluster(t *testing.T) *authCluster {
	t.Helper()
	a := &authCluster{dir: t.TempDir()}
	ca := newAuthority(t, a.file("ca.pem"))
	ca.issue(t, a.file("server"))
	own := ca.issue(t, a.file("client"))
	c := embed.NewConfig()
	c.Dir = a.file("data")
	c.ListenPeerUrls = nil
	c.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
	c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = a.file("server.pem"), a.file("server.key")
	c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = a.file("ca.pem"), true
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, 100
	c.BcryptCost = 4 // the least
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-e.Server.ReadyNotify():
	case <-ctx.Done():
		t.Fatal("etcd does not answer")
	}
	a.endpoint = "https://" + e.Clients[0].Addr().String()
	config := clientv3.Config{Endpoints: []string{a.endpoint}, Logger: zap.NewNop(),
		TLS: &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{own}}}
	first, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	addUsers(t, ctx, first)
	config.Username, config.Password = "root", "secret"
	if a.admin, err = clientv3.New(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.admin.Close() })
	return a
}

func addUsers(t *testing.T, ctx context.Context, client *clientv3.Client) {
	t.Helper()
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(client.RoleAdd(ctx, "rdzv"))
	do(client.RoleGrantPermission(ctx, "rdzv", "/rdzv/", clientv3.GetPrefixRangeEnd("/rdzv/"),
		clientv3.PermissionType(clientv3.PermReadWrite)))
	for _, user := range []string{"root", "trainer", "guest"} {
		do(client.UserAdd(ctx, user, "secret"))
	}
	do(client.UserGrantRole(ctx, "root", "root"))
	do(client.UserGrantRole(ctx, "trainer", "rdzv"))
	do(client.AuthEnable(ctx))
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T, file string) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	a.key = newKey(t)
	a.cert = certificate("authority")
	a.cert.IsCA, a.cert.BasicConstraintsValid, a.cert.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.pool.AppendCertsFromPEM(writePEM(t, file, "CERTIFICATE", der))
	return a
}

// issue writes a certificate for this host to NAME.pem and its private key to NAME.key.
func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, cert := newKey(t), certificate(filepath.Base(name))
	cert.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(writePEM(t, name+".pem", "CERTIFICATE", der),
		writePEM(t, name+".key", "PRIVATE KEY", private))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, file, kind string, der []byte) []byte {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return text
}
