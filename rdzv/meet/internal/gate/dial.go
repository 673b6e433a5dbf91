package gate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"time"

	"rdzv/rdzv/meet/internal/wire"
	"rdzv/rdzv/secret"
)

// connectTimeout is how long an address may take to answer at all. A lost first packet is sent
// again after 1 s.
const connectTimeout = 3 * time.Second

// answerTimeout is how long one that has answered may take to say that it is the store: it may
// still be starting it.
const answerTimeout = 15 * time.Second

// A Dialer makes verified connections to the store of one job.
type Dialer struct {
	tls    *tls.Config // nil: --insecure
	public []byte
	host   string // this host's name, for messages on the other side
}

// NewDialer dials for the job with that key, or with a nil key for the one with that public name;
// host is what this host is called.
func NewDialer(key *secret.Key, public []byte, host string) (*Dialer, error) {
	d := &Dialer{public: public, host: host}
	if key == nil {
		return d, nil
	}
	cfg, err := key.ClientTLS()
	if err != nil {
		return nil, err
	}
	cfg.NextProtos = append(cfg.NextProtos, hostPrefix+wire.Word(host))
	d.tls, d.public = cfg, key[:secret.PublicLen]
	return d, nil
}

// Dial connects, proves, and waits for the greeting. The connection it returns is the store's own
// protocol from here on.
func (d *Dialer) Dial(ctx context.Context, addr netip.AddrPort) (net.Conn, Greeting, error) {
	conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, Greeting{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(answerTimeout))
	verified, greeted, err := d.prove(ctx, conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, Greeting{}, err
	}
	conn.SetDeadline(time.Time{})
	return verified, greeted, nil
}

func (d *Dialer) prove(ctx context.Context, conn net.Conn) (net.Conn, Greeting, error) {
	if d.tls == nil {
		greeted, err := helloPlain(conn, d.public, d.host)
		return conn, greeted, err
	}
	secure := tls.Client(conn, d.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, Greeting{}, d.explain(err)
	}
	addrs, err := readGreeting(secure)
	if err != nil {
		return nil, Greeting{}, err
	}
	return secure, Greeting{instanceOf(secure.ConnectionState().PeerCertificates[0]), addrs}, nil
}

// explain tells from the certificate that was refused who it is that answered, or from an answer
// without one.
func (d *Dialer) explain(err error) error {
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
		return ErrNotStore
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
