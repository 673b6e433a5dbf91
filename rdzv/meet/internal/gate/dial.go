package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"

	"rdzv/rdzv/internal/protocol"
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
	ConnectTimeout time.Duration // for a TCP connection
	// Shared makes the connections to a shared store, if one is found instead of a store of the job;
	// nil: none is searched for.
	Shared *Dialer

	tls *tls.Config
}

// NewDialer returns a Dialer for the job with that key, or if key is nil (--insecure) for the job
// with that public name. host is the name of this host, for messages of the other agent. id is what
// Gate.Clients returns there; "" for none.
func NewDialer(key *secret.Key, public []byte, host, id string) (*Dialer, error) {
	cfg, err := orOpen(key, public).ClientTLS()
	if err != nil {
		return nil, err
	}
	cfg.NextProtos = append(cfg.NextProtos, hostPrefix+wire.Word(host), idPrefix+wire.Word(id),
		versionPrefix+protocol.Magic)
	return &Dialer{ConnectTimeout: connectTimeout, tls: cfg}, nil
}

// Dial connects, authenticates both sides, and waits for the greeting. The connection that it
// returns carries the store's own protocol.
func (d *Dialer) Dial(ctx context.Context, addr netip.AddrPort) (net.Conn, Greeting, error) {
	return d.DialAgent(ctx, addr, func(Instance) error { return nil })
}

// DialAgent is Dial for an address where an agent may listen that does not know yet which agent
// hosts. It calls wait when that agent is authenticated, and before this one is: Gate.Clients there
// does not list a client that wait has not been called for. An error of wait ends the attempt.
func (d *Dialer) DialAgent(ctx context.Context, addr netip.AddrPort, wait func(Instance) error) (
	net.Conn, Greeting, error,
) {
	conn, greeting, err := d.dial(ctx, addr, wait)
	if err != errShared {
		return conn, greeting, err
	}
	conn, greeting, err = d.Shared.dial(ctx, addr, wait)
	greeting.Shared = true
	version, isVersion := errors.AsType[*protocol.VersionError](err)
	switch {
	case err == ErrDifferentToken:
		err = ErrOtherShared
	case isVersion:
		version.Shared = true
	}
	return conn, greeting, err
}

// errShared means that a shared store listens at the address.
var errShared = errors.New("is a shared store")

func (d *Dialer) dial(ctx context.Context, addr netip.AddrPort, wait func(Instance) error) (
	net.Conn, Greeting, error,
) {
	raw, err := (&net.Dialer{Timeout: d.ConnectTimeout}).DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, Greeting{}, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	raw.SetDeadline(time.Now().Add(handshakeTimeout))
	conn, greeting, err := d.authenticate(ctx, raw, wait)
	if err == nil {
		raw.SetDeadline(time.Now().Add(answerTimeout))
		greeting.Addrs, err = readGreeting(conn)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		raw.Close()
		return nil, Greeting{}, err
	}
	raw.SetDeadline(time.Time{})
	return conn, greeting, nil
}

// authenticate authenticates both sides, and returns the connection on which the greeting follows,
// and the ID of the other side. A client of TLS 1.3 sends its certificate when it has authenticated
// the server.
func (d *Dialer) authenticate(
	ctx context.Context, conn net.Conn, wait func(Instance) error,
) (_ net.Conn, g Greeting, err error) {
	cfg := d.tls.Clone()
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		g.ID = instanceOf(s.PeerCertificates[0])
		return nil
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &d.tls.Certificates[0], wait(g.ID)
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, g, d.explain(err)
	}
	return secure, g, nil
}

func readGreeting(conn net.Conn) ([]netip.AddrPort, error) {
	words, err := readLine(conn)
	if err != nil {
		return nil, err
	}
	return parseGreeting(words)
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
	case d.Shared != nil && names[0] == d.Shared.tls.ServerName:
		return errShared
	}
	return ErrDifferentJob
}
