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

// connectTimeout limits the time for a TCP connection. It is enough for one retransmission, which
// takes place after 1 s.
const connectTimeout = 3 * time.Second

// answerTimeout limits the time between the connection and the greeting, in which the other agent
// may still be starting the store.
const answerTimeout = 15 * time.Second

// A Dialer makes connections to the store of one job.
type Dialer struct {
	tls    *tls.Config // nil: --insecure
	public []byte
	host   string // name of this host, for messages of the other agent
}

// NewDialer returns a Dialer for the job with that key, or if key is nil (--insecure) for the job
// with that public name. host is the name of this host.
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

// Dial connects, authenticates both sides, and waits for the greeting. The connection that it
// returns carries the store's own protocol.
func (d *Dialer) Dial(ctx context.Context, addr netip.AddrPort) (net.Conn, Greeting, error) {
	conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, Greeting{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(answerTimeout))
	verified, greeting, err := d.handshake(ctx, conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, Greeting{}, err
	}
	conn.SetDeadline(time.Time{})
	return verified, greeting, nil
}

func (d *Dialer) handshake(ctx context.Context, conn net.Conn) (net.Conn, Greeting, error) {
	if d.tls == nil {
		greeting, err := sendHello(conn, d.public, d.host)
		return conn, greeting, err
	}
	secure := tls.Client(conn, d.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, Greeting{}, d.explain(err)
	}
	addrs, err := readGreeting(secure)
	if err != nil {
		return nil, Greeting{}, err
	}
	id := instanceOf(secure.ConnectionState().PeerCertificates[0])
	return secure, Greeting{id, addrs}, nil
}

// explain determines from the certificate that could not be verified, or from an answer that is not
// TLS, what the other side is.
func (d *Dialer) explain(err error) error {
	var notTLS tls.RecordHeaderError
	if errors.As(err, &notTLS) {
		return notStoreError(string(notTLS.RecordHeader[:]))
	}
	var unverified *tls.CertificateVerificationError
	if !errors.As(err, &unverified) || len(unverified.UnverifiedCertificates) == 0 {
		return err
	}
	switch public := publicOfCert(unverified.UnverifiedCertificates[0]); public {
	case "":
		return ErrNotStore
	case secret.PublicOf(d.tls.ServerName):
		return ErrDifferentToken
	default:
		return ErrDifferentJob
	}
}

func publicOfCert(cert *x509.Certificate) string {
	if len(cert.DNSNames) != 1 {
		return ""
	}
	return secret.PublicOf(cert.DNSNames[0])
}
