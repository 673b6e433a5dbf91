package meet

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
)

// After the TLS handshake the host speaks first, one line. Until it has, the client cannot know that its own certificate
// was accepted (TLS 1.3 tells it only with the first answer), nor that this agent has made up its mind to host.
//
//	rdzv1 ok ADDR:PORT,ADDR:PORT   come in, the store's own protocol follows; it listens on these addresses
//	rdzv1 moved ADDR:PORT          the store is there
//
// Without a key, the client says "rdzv1 hello PUBLIC HOST" first, and the host answers "rdzv1 ok ADDR:PORT INSTANCE", or "rdzv1 other"
// to an agent of another job.
const magic = "rdzv1"

// maxLine is the longest line of the greeting, in bytes, its end included: maxBeaconAddrs of IPv6, and some words.
const maxLine = 900

// A greeting is how the host of the store has answered.
type greeting struct {
	id    instance
	addrs []netip.AddrPort // where it listens, as it says
}

var errGreeting = errors.New("answered something else than a store")

// A serviceError is an errGreeting of which is known what answered.
type serviceError string

func (e serviceError) Error() string        { return string(e) + ", not a store" }
func (e serviceError) Is(target error) bool { return target == errGreeting }

// foreign tells from how an answer begins which service it is that answers.
func foreign(answer string) error {
	switch {
	case strings.HasPrefix(answer, "SSH-"):
		return serviceError("an ssh server")
	case strings.HasPrefix(answer, "HTTP/"):
		return serviceError("an HTTP server")
	}
	return errGreeting
}

// readLine reads up to the first newline and not a byte more: what follows belongs to the store's protocol.
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
	return nil, errGreeting
}

func fields(line string) ([]string, error) {
	words := strings.Split(line, " ")
	if len(words) < 2 || words[0] != magic {
		return nil, foreign(line)
	}
	return words[1:], nil
}

func writeLine(w io.Writer, words ...string) error {
	_, err := io.WriteString(w, magic+" "+strings.Join(words, " ")+"\n")
	return err
}

// readGreeting reads the host's line behind a finished TLS handshake, which says where the host listens.
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
		return parseAddrPorts(words[1])
	case words[0] == "moved" && len(words) == 2:
		addr, err := netip.ParseAddrPort(words[1])
		if err != nil {
			return nil, errGreeting
		}
		return nil, movedError{addr}
	case words[0] == "other":
		return nil, ErrOtherJob
	}
	return nil, errGreeting
}

// formatAddrPorts writes addresses with commas between; a zone means something on its own host only.
func formatAddrPorts(addrs []netip.AddrPort) string {
	var texts []string
	for _, a := range addrs[:min(len(addrs), maxBeaconAddrs)] {
		texts = append(texts, netip.AddrPortFrom(a.Addr().WithZone(""), a.Port()).String())
	}
	return strings.Join(texts, ",")
}

// parseAddrPorts reads what formatAddrPorts wrote.
func parseAddrPorts(list string) ([]netip.AddrPort, error) {
	var addrs []netip.AddrPort
	for text := range strings.SplitSeq(list, ",") {
		a, err := netip.ParseAddrPort(text)
		if err != nil || a.Port() == 0 || a.Addr().IsUnspecified() || a.Addr().IsMulticast() || a.Addr().Zone() != "" || len(addrs) == maxBeaconAddrs {
			return nil, errGreeting
		}
		addrs = append(addrs, a)
	}
	return addrs, nil
}

// movedError is the answer of an agent that has found a better host than itself.
type movedError struct{ to netip.AddrPort }

func (e movedError) Error() string { return fmt.Sprintf("moved to %s", e.to) }

// helloPlain is the client's half without a key.
func helloPlain(conn net.Conn, public []byte, host string) (greeting, error) {
	if err := writeLine(conn, "hello", hex.EncodeToString(public), word(host)); err != nil {
		return greeting{}, err
	}
	words, err := readLine(conn)
	if err != nil {
		return greeting{}, err
	}
	addrs, err := greeted(words)
	if err != nil {
		return greeting{}, err
	}
	id, err := hex.DecodeString(words[len(words)-1])
	if err != nil || len(id) != len(instance{}) {
		return greeting{}, errGreeting
	}
	return greeting{instance(id), addrs}, nil
}

// readHello is the host's half of helloPlain, but for the answer.
func readHello(conn net.Conn) (public, host string, err error) {
	words, err := readLine(conn)
	if err != nil {
		return "", "", err
	}
	if len(words) != 3 || words[0] != "hello" {
		return "", "", errGreeting
	}
	return words[1], word(words[2]), nil
}

func newInstance() instance {
	var id instance
	rand.Read(id[:])
	return id
}

// word makes a name from elsewhere fit to be one word of a line, or of a message: letters, digits, dots and dashes, 64 at most.
func word(name string) string {
	keep := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}
	name = strings.Map(keep, name)
	if name == "" {
		return "-"
	}
	return name[:min(len(name), 64)]
}
