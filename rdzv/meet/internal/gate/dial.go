package gate

import (
	"context"
	"crypto/tls"
	"encoding/hex"
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

// handshake authenticates both sides and reads the greeting. It returns the connection on which the
// store's protocol follows.
func (d *Dialer) handshake(ctx context.Context, conn net.Conn) (_ net.Conn, g Greeting, err error) {
	if d.tls == nil {
		err = writeLine(conn, "hello", hex.EncodeToString(d.public), wire.Word(d.host))
	} else {
		secure := tls.Client(conn, d.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, g, d.explain(err)
		}
		g.ID = instanceOf(secure.ConnectionState().PeerCertificates[0])
		conn = secure
	}
	var words []string
	if err == nil {
		words, err = readLine(conn)
	}
	if err == nil {
		g.Addrs, err = parseGreeting(words)
	}
	if err != nil || d.tls != nil {
		return conn, g, err
	}
	id, err := hex.DecodeString(words[len(words)-1])
	if err != nil || len(id) != len(g.ID) {
		return nil, g, ErrNotStore
	}
	g.ID = Instance(id)
	return conn, g, nil
}

// explain determines from the certificate that could not be verified, or from an answer that is not
// TLS, what the other side is.
func (d *Dialer) explain(err error) error {
	if notTLS, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return notStoreError(string(notTLS.RecordHeader[:]))
	}
	unverified, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(unverified.UnverifiedCertificates) == 0 {
		return err
	}
	names := unverified.UnverifiedCertificates[0].DNSNames
	switch {
	case len(names) != 1 || secret.PublicOf(names[0]) == "":
		return ErrNotStore
	case names[0] == d.tls.ServerName:
		return ErrDifferentToken
	}
	return ErrDifferentJob
}
