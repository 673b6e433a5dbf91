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

// What keeps an agent of the same user out, as far as both sides can tell.
var (
	// ErrOtherToken is an agent of the same job (the same line, or the same --job) that has another
	// secret.
	ErrOtherToken = errors.New("holds another token")
	// ErrOtherJob is an agent of another job: another line, or another --job.
	ErrOtherJob = errors.New("is of another job")
)

// A Stranger is who was kept out and is perhaps one of the user's own.
type Stranger struct {
	Host string     // the name it gives itself, made harmless but not verified; "" if it gave none
	Addr netip.Addr // where it came from, or was asked
	Why  error      // ErrOtherToken or ErrOtherJob
}

// hostPrefix begins an extra entry in the client's list of protocols, which carries its host's
// name. It is in the clear, and only for messages.
const hostPrefix = "rdzv-host/"

// noteHello makes cfg note on the stranger what its first message says.
func noteHello(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if s, ok := hello.Conn.(*incoming); ok {
			s.heard(secret.PublicOf(hello.ServerName), hostOf(hello.SupportedProtos))
		}
		return nil, nil
	}
	return cfg
}

func hostOf(protos []string) string {
	for _, p := range protos {
		if host, ok := strings.CutPrefix(p, hostPrefix); ok {
			return wire.Word(host)
		}
	}
	return ""
}

// tell reports a connection that did not pass, if it seems to be an agent of this user.
func (g *Gate) tell(s *incoming, err error) {
	s.mu.Lock()
	who := Stranger{Host: s.host, Addr: addrOf(s.RemoteAddr()).Addr(), Why: g.why(s.public, err)}
	s.mu.Unlock()
	if who.Why != nil {
		g.told(who)
	}
}

// why tells strangers apart: one that asked for this job, and then refused our certificate or had
// one refused, has another key.
func (g *Gate) why(public string, err error) error {
	if public == "" {
		return nil
	}
	if public != g.public {
		return ErrOtherJob
	}
	var refused *tls.CertificateVerificationError
	var alert *net.OpError
	if errors.As(err, &refused) || errors.As(err, &alert) && alert.Op == "remote error" {
		return ErrOtherToken
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
