package gate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet/internal/wire"
	"rdzv/rdzv/secret"
)

// Reasons why a connection between two agents of the same user is rejected, as far as each side can
// determine them.
var (
	// ErrDifferentToken means that the other agent has the same job identity and a different
	// secret.
	ErrDifferentToken = errors.New("has a different token")
	// ErrOtherShared means that the other side is a shared store that has a different token, such as
	// another user's.
	ErrOtherShared = fmt.Errorf("is a shared store and %w", ErrDifferentToken)
	// ErrDifferentJob means that the other agent has a different job identity.
	ErrDifferentJob = errors.New("belongs to a different job")
)

// A Rejection describes an agent, probably of the same user, to which no connection was possible.
type Rejection struct {
	Host string     // the name that it gives itself (see wire.Word), not verified; "" if none
	Addr netip.Addr // the address from which it connected, or to which this agent connected
	// Reason is ErrDifferentToken, ErrDifferentJob, or a *protocol.VersionError.
	Reason error
	// Hosting is set if it hosts the store and has refused this agent's connection.
	Hosting bool
	// Called is set if it has connected to tell that it belongs to a different job, see Caller.
	Called bool
}

// Caller is the id of a client that connects only to tell the agent at the address about itself: a
// user may have meant them to be agents of one job.
const Caller = "caller"

// Prefixes of additional entries in the client's list of protocols (ALPN): the name of its host,
// for messages only, its id, see NewDialer, and protocol.Magic of its version. They are sent
// unencrypted; the handshake fails if somebody has changed them.
const (
	hostPrefix    = "rdzv-host/"
	idPrefix      = "rdzv-id/"
	versionPrefix = "rdzv-version/"
)

// recordHello makes cfg record on the connection which job and host the client names in its first
// message.
func recordHello(cfg *tls.Config) {
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		s := hello.Conn.(*incoming)
		s.public = secret.PublicOf(hello.ServerName)
		s.host, s.id = wordOf(hello, hostPrefix), wordOf(hello, idPrefix)
		s.version = max(1, protocol.VersionOf(wordOf(hello, versionPrefix)))
		return nil, nil
	}
}

func wordOf(hello *tls.ClientHelloInfo, prefix string) string {
	for _, p := range hello.SupportedProtos {
		if word, ok := strings.CutPrefix(p, prefix); ok {
			return wire.Word(word)
		}
	}
	return ""
}

// reject reports a connection whose handshake failed with err, if it seems to come from an agent of
// this user. A client that asked for this job and did not accept the server's certificate, or has a
// certificate that was not accepted, has a different secret.
func (g *Gate) reject(s *incoming, err error) {
	r := Rejection{Host: s.host, Addr: addrOf(s.RemoteAddr()).Addr(), Called: s.id == Caller}
	var version *protocol.VersionError
	var unverified *tls.CertificateVerificationError
	var alert *net.OpError
	switch {
	case s.public == "": // not an agent
		return
	case s.public != g.public:
		r.Reason = ErrDifferentJob
	case errors.As(err, &version): // both sides are authenticated
		r.Reason = version
	case errors.As(err, &unverified), errors.As(err, &alert) && alert.Op == "remote error":
		r.Reason = ErrDifferentToken
	default:
		return
	}
	g.report(r)
}

func addrOf(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
