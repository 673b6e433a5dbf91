package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// etcdUser is the user of the agents, who may read and write only the keys of rdzv. The user is in
// the agents' certificate, or they log in with the password.
const (
	etcdUser     = "rdzv"
	etcdPassword = "the agents' password"
	rootPassword = "root's password"
)

// makeUsers makes the users root and etcdUser, whom the members require from now on.
func (e *etcd) makeUsers() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), waitLimit)
	defer cancel()
	keys := clientv3.PermissionType(clientv3.PermReadWrite)
	end := clientv3.GetPrefixRangeEnd(jobPrefix)
	_, err1 := e.admin.UserAdd(ctx, "root", rootPassword)
	_, err2 := e.admin.UserGrantRole(ctx, "root", "root")
	_, err3 := e.admin.RoleAdd(ctx, etcdUser)
	_, err4 := e.admin.RoleGrantPermission(ctx, etcdUser, jobPrefix, end, keys)
	_, err5 := e.admin.UserAdd(ctx, etcdUser, etcdPassword)
	_, err6 := e.admin.UserGrantRole(ctx, etcdUser, etcdUser)
	_, err7 := e.admin.AuthEnable(ctx)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		e.t.Fatal(err)
	}
	e.admin = e.newClient(rootsLogins...)
}

// rootsLogins make a client log in for each call. etcd's client sends its old token with its login, which
// etcd 3.4 refuses when that has expired.
var rootsLogins = []grpc.DialOption{
	grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, answer any, conn *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) (err error) {
		if method != etcdserverpb.Auth_Authenticate_FullMethodName {
			ctx, err = withRootsToken(ctx, conn)
		}
		if err != nil {
			return err
		}
		return invoke(ctx, method, request, answer, conn, opts...)
	}),
	grpc.WithChainStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		ctx, err := withRootsToken(ctx, conn)
		if err != nil {
			return nil, err
		}
		return open(ctx, desc, conn, method, opts...)
	}),
}

func withRootsToken(ctx context.Context, conn *grpc.ClientConn) (context.Context, error) {
	login, err := etcdserverpb.NewAuthClient(conn).Authenticate(ctx,
		&etcdserverpb.AuthenticateRequest{Name: "root", Password: rootPassword})
	if err != nil {
		return nil, err
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, login.Token), nil
}

// makeCertificates writes a CA, and the certificates and keys of the members and of the agents.
func (e *etcd) makeCertificates() {
	e.t.Helper()
	ca := e.certificate("ca", nil, &x509.Certificate{
		Subject: pkix.Name{Organization: []string{"rdzv's tests"}},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	server := &x509.Certificate{
		Subject: pkix.Name{Organization: []string{"etcd"}},
		// A member of etcd 3.4 is also a client of itself.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range []string{"10.77.0.11", "10.77.0.12", "10.77.0.13", "127.0.0.1"} {
		server.IPAddresses = append(server.IPAddresses, net.ParseIP(host))
	}
	e.certificate("server", ca, server)
	e.certificate("client", ca, &x509.Certificate{
		Subject:     pkix.Name{CommonName: etcdUser},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// signer is a CA, with its key.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// certificate writes NAME.pem and NAME.key. by is nil for a CA, which signs itself.
func (e *etcd) certificate(name string, by *signer, c *x509.Certificate) *signer {
	e.t.Helper()
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		e.t.Fatal(err)
	}
	own := &signer{c, key}
	if by == nil {
		by = own
	}
	der, err1 := x509.CreateCertificate(rand.Reader, c, by.certificate, &key.PublicKey, by.key)
	secret, err2 := x509.MarshalECPrivateKey(key)
	write := func(path, kind string, der []byte) error {
		return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	if err := errors.Join(err1, err2, write(e.file(name+".pem"), "CERTIFICATE", der),
		write(e.file(name+".key"), "EC PRIVATE KEY", secret)); err != nil {
		e.t.Fatal(err)
	}
	return own
}
