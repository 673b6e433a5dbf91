package meet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"time"

	"rdzv/rdzv/secret"
)

// connectTimeout is how long an address may take to answer at all. A lost first packet is sent again after 1 s.
const connectTimeout = 3 * time.Second

// answerTimeout is how long one that has answered may take to say that it is the store: it may still be starting it.
const answerTimeout = 15 * time.Second

// A dialer makes verified connections to the store of one job.
type dialer struct {
	tls    *tls.Config // nil: --insecure
	public []byte
	host   string // this host's name, for messages on the other side
}

func newDialer(key *secret.Key, public []byte, host string) (*dialer, error) {
	d := &dialer{public: public, host: host}
	if key == nil {
		return d, nil
	}
	cfg, err := key.ClientTLS()
	if err != nil {
		return nil, err
	}
	cfg.NextProtos = append(cfg.NextProtos, hostPrefix+word(host))
	d.tls, d.public = cfg, key[:secret.PublicLen]
	return d, nil
}

// dial connects, proves, and waits for the greeting. The connection it returns is the store's own protocol from here on.
func (d *dialer) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, greeting, error) {
	conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, greeting{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(answerTimeout))
	verified, greeted, err := d.prove(ctx, conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, greeting{}, err
	}
	conn.SetDeadline(time.Time{})
	return verified, greeted, nil
}

func (d *dialer) prove(ctx context.Context, conn net.Conn) (net.Conn, greeting, error) {
	if d.tls == nil {
		greeted, err := helloPlain(conn, d.public, d.host)
		return conn, greeted, err
	}
	secure := tls.Client(conn, d.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, greeting{}, d.explain(err)
	}
	addrs, err := readGreeting(secure)
	if err != nil {
		return nil, greeting{}, err
	}
	return secure, greeting{instanceOf(secure.ConnectionState().PeerCertificates[0]), addrs}, nil
}

// explain tells from the certificate that was refused who it is that answered, or from an answer without one.
func (d *dialer) explain(err error) error {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		return foreign(string(plain.RecordHeader[:]))
	}
	var refused *tls.CertificateVerificationError
	if !errors.As(err, &refused) || len(refused.UnverifiedCertificates) == 0 {
		return err
	}
	switch public := publicOfCert(refused.UnverifiedCertificates[0]); public {
	case "":
		return errGreeting
	case secret.PublicOf(d.tls.ServerName):
		return ErrOtherToken
	default:
		return ErrOtherJob
	}
}

func publicOfCert(cert *x509.Certificate) string {
	if len(cert.DNSNames) != 1 {
		return ""
	}
	return secret.PublicOf(cert.DNSNames[0])
}
