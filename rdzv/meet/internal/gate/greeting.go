package gate

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"rdzv/rdzv/meet/internal/wire"
)

// After the TLS handshake the host speaks first, one line. Until it has, the client cannot know
// that its own certificate was accepted (TLS 1.3 tells it only with the first answer), nor that
// this agent has made up its mind to host.
//
//	rdzv1 ok ADDR:PORT,ADDR:PORT   come in, the store's own protocol follows; it listens on these addresses
//	rdzv1 moved ADDR:PORT          the store is there
//
// Without a key, the client says "rdzv1 hello PUBLIC HOST" first, and the host answers "rdzv1 ok
// ADDR:PORT INSTANCE", or "rdzv1 other" to an agent of another job. maxLine is the longest line of
// the greeting, in bytes, its end included: wire.MaxAddrs of IPv6, and some words.
const maxLine = 900

// A Greeting is how the host of the store has answered.
type Greeting struct {
	ID    Instance
	Addrs []netip.AddrPort // where it listens, as it says
}

// ErrNotStore is the answer of something else that listens where the store should.
var ErrNotStore = errors.New("answered something else than a store")

// A ServiceError is an ErrNotStore of which is known what answered.
type ServiceError string

func (e ServiceError) Error() string        { return string(e) + ", not a store" }
func (e ServiceError) Is(target error) bool { return target == ErrNotStore }

// foreign tells from how an answer begins which service it is that answers.
func foreign(answer string) error {
	switch {
	case strings.HasPrefix(answer, "SSH-"):
		return ServiceError("an ssh server")
	case strings.HasPrefix(answer, "HTTP/"):
		return ServiceError("an HTTP server")
	}
	return ErrNotStore
}

// readLine reads up to the first newline and not a byte more: what follows belongs to the store's
// protocol.
func readLine(r io.Reader) ([]string, error) {
	line := make([]byte, 0, maxLine)
	for b := make([]byte, 1); len(line) < maxLine; line = append(line, b[0]) {
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		if b[0] == '\n' {
			return fields(string(line))
		}
	}
	return nil, ErrNotStore
}

func fields(line string) ([]string, error) {
	words := strings.Split(line, " ")
	if len(words) < 2 || words[0] != wire.Magic {
		return nil, foreign(line)
	}
	return words[1:], nil
}

func writeLine(w io.Writer, words ...string) error {
	_, err := io.WriteString(w, wire.Magic+" "+strings.Join(words, " ")+"\n")
	return err
}

// readGreeting reads the host's line behind a finished TLS handshake, which says where the host
// listens.
func readGreeting(r io.Reader) ([]netip.AddrPort, error) {
	words, err := readLine(r)
	if err != nil {
		return nil, err
	}
	return greeted(words)
}

func greeted(words []string) ([]netip.AddrPort, error) {
	switch {
	case words[0] == "ok" && len(words) > 1:
		addrs, err := wire.ParseAddrs(words[1])
		if err != nil {
			return nil, ErrNotStore
		}
		return addrs, nil
	case words[0] == "moved" && len(words) == 2:
		addr, err := netip.ParseAddrPort(words[1])
		if err != nil {
			return nil, ErrNotStore
		}
		return nil, MovedError{addr}
	case words[0] == "other":
		return nil, ErrOtherJob
	}
	return nil, ErrNotStore
}

// MovedError is the answer of an agent that has found a better host than itself.
type MovedError struct{ To netip.AddrPort }

func (e MovedError) Error() string { return fmt.Sprintf("moved to %s", e.To) }

// helloPlain is the client's half without a key.
func helloPlain(conn net.Conn, public []byte, host string) (Greeting, error) {
	if err := writeLine(conn, "hello", hex.EncodeToString(public), wire.Word(host)); err != nil {
		return Greeting{}, err
	}
	words, err := readLine(conn)
	if err != nil {
		return Greeting{}, err
	}
	addrs, err := greeted(words)
	if err != nil {
		return Greeting{}, err
	}
	id, err := hex.DecodeString(words[len(words)-1])
	if err != nil || len(id) != len(Instance{}) {
		return Greeting{}, ErrNotStore
	}
	return Greeting{Instance(id), addrs}, nil
}

// readHello is the host's half of helloPlain, but for the answer.
func readHello(conn net.Conn) (public, host string, err error) {
	words, err := readLine(conn)
	if err != nil {
		return "", "", err
	}
	if len(words) != 3 || words[0] != "hello" {
		return "", "", ErrNotStore
	}
	return words[1], wire.Word(words[2]), nil
}

// An Instance is one run of one store: the digest of the certificate it was started with.
type Instance [16]byte

func instanceOf(cert *x509.Certificate) Instance {
	sum := sha256.Sum256(cert.Raw)
	return Instance(sum[:len(Instance{})])
}

func newInstance() Instance {
	var id Instance
	rand.Read(id[:])
	return id
}
