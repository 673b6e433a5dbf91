package gate

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"strings"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet/internal/wire"
	"rdzv/rdzv/secret"
)

// After the TLS handshake the agent that listens sends one line, the greeting. Before it the client
// knows neither whether its certificate was accepted (a TLS 1.3 client learns that only from the
// first data) nor whether the agent hosts the store.
//
//	rdzv5 ok ADDR:PORT,ADDR:PORT   the store's protocol follows; it listens on these addresses
//	rdzv5 full                     the job of this store has all its agents
//	rdzv5 version                  the client has another version of the protocol
//
// The first word has the version of the sender, see package protocol.

// maxLine is the maximum length of a line in bytes, including the newline. It is enough for
// wire.MaxAddrs IPv6 addresses.
const maxLine = 900

// A Greeting is the answer of the agent that hosts the store.
type Greeting struct {
	ID     Instance         // of the store
	Addrs  []netip.AddrPort // on which it listens, as it reports
	Shared bool             // it is a shared store, found by Dialer.Shared
}

// ErrNotStore means that another service listens at the address.
var ErrNotStore = errors.New("answered, but is not a store")

// ErrFull means that the job of the store at the address has all its agents.
var ErrFull = errors.New("the job of that store has all its agents")

// A ServiceError is an ErrNotStore that names the service.
type ServiceError string

func (e ServiceError) Error() string        { return string(e) + ", not a store" }
func (e ServiceError) Is(target error) bool { return target == ErrNotStore }

// notStoreError returns the error for an answer that is not from a store; its beginning may
// identify the service.
func notStoreError(answer string) error {
	switch {
	case strings.HasPrefix(answer, "SSH-"):
		return ServiceError("an SSH server")
	case strings.HasPrefix(answer, "HTTP/"):
		return ServiceError("an HTTP server")
	}
	return ErrNotStore
}

// readLine reads up to the first newline, and no byte after it, which belongs to the store's
// protocol. It returns the words after the first one. If that has another version, the error is a
// *protocol.VersionError.
func readLine(r io.Reader) ([]string, error) {
	line := make([]byte, 0, maxLine)
	for b := make([]byte, 1); len(line) < maxLine; line = append(line, b[0]) {
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		if b[0] == '\n' {
			words := strings.Split(string(line), " ")
			version := protocol.VersionOf(words[0])
			if len(words) < 2 || version == 0 {
				return nil, notStoreError(string(line))
			}
			return words[1:], otherVersion(version)
		}
	}
	return nil, ErrNotStore
}

// otherVersion is the error about another version than this one, nil for this one.
func otherVersion(version int) error {
	if version == protocol.Version {
		return nil
	}
	return &protocol.VersionError{Other: version}
}

func writeLine(w io.Writer, words ...string) error {
	_, err := io.WriteString(w, protocol.Magic+" "+strings.Join(words, " ")+"\n")
	return err
}

// parseGreeting parses a greeting and returns the addresses on which the store listens.
func parseGreeting(words []string) ([]netip.AddrPort, error) {
	switch {
	case words[0] == "ok" && len(words) > 1:
		if addrs, err := wire.ParseAddrs(words[1]); err == nil {
			return addrs, nil
		}
	case words[0] == "full":
		return nil, ErrFull
	}
	return nil, ErrNotStore
}

// An Order is the position of an agent among those that may host: the one with the lowest does.
type Order [32]byte

// An Instance identifies one run of one store. It begins with the Order of the agent; the rest is a
// digest of the store's certificate, which has the Order.
type Instance [len(Order{}) + 16]byte

// String returns hexadecimal digits.
func (i Instance) String() string { return hex.EncodeToString(i[:]) }

func instanceOf(cert *x509.Certificate) (i Instance) {
	order, err := hex.DecodeString(secret.LabelOf(cert))
	if err != nil || len(order) != len(Order{}) {
		order = bytes.Repeat([]byte{0xff}, len(Order{})) // not of this version of rdzv
	}
	sum := sha256.Sum256(cert.Raw)
	copy(i[copy(i[:], order):], sum[:])
	return i
}
