package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/status"
)

const (
	noAnswer = "no answer"
	silent   = "it accepts connections, but does not answer"
)

// How long a member may take to answer, and to reject a certificate.
const (
	probeTimeout = 3 * time.Second
	alertTimeout = time.Second
)

// prober asks single members of a cluster, and finds out why they cannot be used.
type prober struct {
	Cluster
	tls *tls.Config // nil without encryption
}

// diagnose says why the gRPC connection to a member failed: it connects again in single steps,
// because gRPC reports only texts.
func (p *prober) diagnose(ctx context.Context, u string, failure error) Answer {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := connect(ctx, u)
	if err != nil {
		return unreachable(u, err)
	}
	defer conn.Close()
	if p.tls != nil {
		return p.diagnoseTLS(ctx, u, conn, failure)
	}
	if speaksTLS(ctx, u) {
		return Answer{
			URL: u, Text: "it expects TLS", final: true, hint: "use https:// instead of http://",
		}
	}
	return identify(u, conn, failure)
}

// connect makes a TCP connection that lives as long as ctx.
func connect(ctx context.Context, u string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", hostOf(u))
	if deadline, limited := ctx.Deadline(); err == nil && limited {
		_ = conn.SetDeadline(deadline)
	}
	return conn, err
}

// unreachable says why there is no TCP connection.
func unreachable(u string, err error) Answer {
	dns, unresolved := errors.AsType[*net.DNSError](err)
	errno, refused := errors.AsType[syscall.Errno](err)
	switch {
	case unresolved && dns.IsNotFound:
		return Answer{URL: u, Text: fmt.Sprintf("%q does not resolve", dns.Name)}
	case unresolved && dns.IsTimeout:
		return unanswered(u, dns.Name)
	case unresolved:
		return Answer{URL: u, Text: fmt.Sprintf("cannot resolve %q: %s", dns.Name, dns.Err)}
	case refused:
		return Answer{URL: u, Text: errno.Error()}
	}
	return Answer{URL: u, Text: noAnswer}
}

func timedOut(err error) bool {
	failure, ok := errors.AsType[net.Error](err)
	return ok && failure.Timeout()
}

// identify asks a service without TLS by HTTP/1 what it is.
func identify(u string, conn net.Conn, failure error) Answer {
	_, _ = io.WriteString(conn, "GET /version HTTP/1.0\r\n\r\n")
	begin := make([]byte, 1<<10)
	n, err := io.ReadAtLeast(conn, begin, len("HTTP/1."))
	text := string(begin[:n])
	switch {
	case strings.Contains(text, "etcdserver"):
		return Answer{URL: u, Text: status.Convert(failure).Message()}
	case strings.HasPrefix(text, "HTTP/"):
		return notEtcd(u, " (HTTP)")
	case n > 0:
		return notEtcd(u, "")
	case timedOut(err):
		return Answer{URL: u, Text: silent}
	}
	return Answer{URL: u, Text: "it closes connections"}
}

// notEtcd is the answer of another service.
func notEtcd(u, what string) Answer {
	return Answer{
		URL: u, Text: "another service uses this port" + what, final: true,
		hint: "name the port at which etcd serves clients, usually " + defaultPort,
	}
}

// speaksTLS tells whether a service answers the begin of a TLS connection in TLS.
func speaksTLS(ctx context.Context, u string) bool {
	whoever := &tls.Config{InsecureSkipVerify: true} // nothing is sent
	conn, err := (&tls.Dialer{Config: whoever}).DialContext(ctx, "tcp", hostOf(u))
	if err == nil {
		conn.Close()
		return true
	}
	_, alert := alertOf(err)
	return alert
}

// alertOf is why the peer has ended a TLS connection, if it has said so.
func alertOf(err error) (reason string, is bool) {
	if remote, ok := errors.AsType[*net.OpError](err); ok && remote.Op == "remote error" {
		return strings.TrimPrefix(remote.Err.Error(), "tls: "), true
	}
	return "", false
}

// diagnoseTLS makes the handshake, and then waits for an alert, because with TLS 1.3 a server
// rejects the certificate of its client after the handshake.
func (p *prober) diagnoseTLS(ctx context.Context, u string, raw net.Conn, failure error) Answer {
	config := p.tls.Clone()
	config.NextProtos = []string{"h2"}
	config.ServerName, _, _ = net.SplitHostPort(hostOf(u))
	conn := tls.Client(raw, config)
	err := conn.HandshakeContext(ctx)
	if timedOut(err) {
		return Answer{URL: u, Text: silent}
	}
	if err == nil && conn.ConnectionState().NegotiatedProtocol != "h2" {
		return notEtcd(u, " (TLS)")
	}
	if err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(alertTimeout))
		_, err = conn.Read(make([]byte, 1))
	}
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case noTLS, errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return p.identifyPlain(ctx, u, failure)
	case err == nil, timedOut(err):
		return Answer{URL: u, Text: status.Convert(failure).Message()}
	}
	return p.certificateAnswer(u, err)
}

// identifyPlain is the answer of a service that does not speak TLS.
func (p *prober) identifyPlain(ctx context.Context, u string, failure error) Answer {
	if _, err := askVersion(ctx, hostOf(u), nil); err == nil || isEtcds(err) {
		return Answer{
			URL: u, Text: "it does not use TLS", final: true,
			hint: "use http:// instead of https://, on a network that you trust",
		}
	}
	conn, err := connect(ctx, u)
	if err != nil {
		return unreachable(u, err)
	}
	defer conn.Close()
	return identify(u, conn, failure)
}

// certificateAnswer says which certificate is not accepted, and why.
func (p *prober) certificateAnswer(u string, err error) Answer {
	a := Answer{URL: u, Text: err.Error(), final: true}
	reason, rejected := alertOf(err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case rejected && p.Cert == "":
		a.Text, a.hint = "it requires a client certificate", "give --store-cert and --store-key"
	case rejected:
		a.Text = fmt.Sprintf("it rejects the client certificate in %q: %s", p.Cert, reason)
		if end := p.tls.Certificates[0].Leaf.NotAfter; time.Now().After(end) {
			a.Text += fmt.Sprintf(" (it was valid until %s)", end.UTC().Format(time.RFC3339))
		}
	case unknown && p.CA == "":
		a.Text = "its certificate is not signed by a CA that this host trusts"
		a.hint = "name the file with the CA of the cluster with --store-ca"
	case unknown:
		a.Text = fmt.Sprintf("its certificate is not signed by the CA in %q", p.CA)
	}
	return a
}
