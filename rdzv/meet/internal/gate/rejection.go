package gate

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"

	"rdzv/rdzv/meet/internal/wire"
	"rdzv/rdzv/secret"
)

// Reasons why a connection between two agents of the same user is rejected, as far as each side can
// determine them.
var (
	// ErrDifferentToken means that the other agent has the same job identity and a different
	// secret.
	ErrDifferentToken = errors.New("has a different token")
	// ErrDifferentJob means that the other agent has a different job identity.
	ErrDifferentJob = errors.New("belongs to a different job")
)

// A Rejection describes an agent, probably of the same user, to which no connection was possible.
type Rejection struct {
	Host   string     // the name that it gives itself (see wire.Word), not verified; "" if none
	Addr   netip.Addr // the address from which it connected, or to which this agent connected
	Reason error      // ErrDifferentToken or ErrDifferentJob
}

// hostPrefix is the prefix of an additional entry in the client's list of protocols (ALPN), which
// contains the name of its host. It is sent unencrypted, and used in messages only.
const hostPrefix = "rdzv-host/"

// recordHello returns a copy of cfg that records on the connection which job and host the client
// names in its first message.
func recordHello(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if s, ok := hello.Conn.(*incoming); ok {
			s.identify(secret.PublicOf(hello.ServerName), hostOf(hello.SupportedProtos))
		}
		return nil, nil
	}
	return cfg
}

func hostOf(protocols []string) string {
	for _, p := range protocols {
		if host, ok := strings.CutPrefix(p, hostPrefix); ok {
			return wire.Word(host)
		}
	}
	return ""
}

// reject reports a connection that failed with err, if it seems to come from an agent of this user.
func (g *Gate) reject(s *incoming, err error) {
	s.mu.Lock()
	r := Rejection{
		Host: s.host, Addr: addrOf(s.RemoteAddr()).Addr(), Reason: g.reason(s.public, err),
	}
	s.mu.Unlock()
	if r.Reason != nil {
		g.report(r)
	}
}

// reason determines why the handshake with a client that asked for the job public failed; nil if
// the client is not an agent. A client that asked for this job and did not accept the server's
// certificate, or has a certificate that was not accepted, has a different secret.
func (g *Gate) reason(public string, err error) error {
	if public == "" {
		return nil
	}
	if public != g.public {
		return ErrDifferentJob
	}
	var unverified *tls.CertificateVerificationError
	var alert *net.OpError
	if errors.As(err, &unverified) || errors.As(err, &alert) && alert.Op == "remote error" {
		return ErrDifferentToken
	}
	return nil
}

func addrOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
