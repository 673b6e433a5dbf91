package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// testTimeout bounds each test.
const testTimeout = 60 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// serve starts an etcd whose URL has a scheme, and returns that URL. change may be nil.
func serve(t *testing.T, scheme string, change func(*embed.Config)) string {
	t.Helper()
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.ListenPeerUrls = nil
	c.ListenClientUrls = []url.URL{{Scheme: scheme, Host: "127.0.0.1:0"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs, c.BcryptCost = 10, 100, 4
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	if change != nil {
		change(c)
	}
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-within(t).Done():
		t.Fatal("etcd does not answer")
	}
	return scheme + "://" + e.Clients[0].Addr().String()
}

// withUsers requires a password: root has "admin", alice, who may use the default prefix, "secret",
// and bob, who may not, "secret" too.
func withUsers(t *testing.T, url string) {
	t.Helper()
	admin, err := clientv3.New(clientv3.Config{
		Endpoints: []string{url}, Logger: zap.NewNop(), DialTimeout: testTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	ctx := within(t)
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(admin.RoleAdd(ctx, "rdzv"))
	do(admin.RoleGrantPermission(ctx, "rdzv", "/rdzv/", clientv3.GetPrefixRangeEnd("/rdzv/"),
		clientv3.PermissionType(clientv3.PermReadWrite)))
	do(admin.UserAdd(ctx, "root", "admin"))
	do(admin.UserGrantRole(ctx, "root", "root"))
	do(admin.UserAdd(ctx, "alice", "secret"))
	do(admin.UserGrantRole(ctx, "alice", "rdzv"))
	do(admin.UserAdd(ctx, "bob", "secret"))
	do(admin.AuthEnable(ctx))
}

// authority is a CA in files, which signs certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, IsCA: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(a.file(name), text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// sign makes NAME.pem and NAME.key, of a certificate for 127.0.0.1 that is valid so long.
func (a *authority) sign(name string, valid time.Duration) (cert, key string) {
	a.t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(valid),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &own.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", pkcs8)
	return a.file(name + ".pem"), a.file(name + ".key")
}
