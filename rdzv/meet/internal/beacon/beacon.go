// Package beacon implements the multicast packets by which agents without a launcher find each
// other on the local network: their encoding, and the sockets that send and receive them.
//
// Package meet decides when beacons are sent and what follows from a received one.
package beacon

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet/internal/wire"
	"rdzv/rdzv/secret"
)

// A Beacon announces an agent on the local network: where it hosts the store, or would host it.
// Encoded it is one line of text with a MAC (HMAC-SHA256) by the secret of its sender:
//
//	rdzv5 hosting PUBLIC ID HOST ADDR:PORT,ADDR:PORT MAC
type Beacon struct {
	Hosting bool             // "hosting": it hosts the store; otherwise "seeking"
	Public  string           // the job's public name in hexadecimal
	ID      string           // gate.Instance of the agent; the one with the lowest id hosts
	Host    string           // name of the agent's host, for messages
	Addrs   []netip.AddrPort // where the agent listens
}

// idLen is the length of an agent's id in bytes, see gate.Instance.
const idLen = 48

// maxLen is the maximum length of a beacon in bytes. It fits into one packet of any network.
const maxLen = 1300

// ErrMAC means that a beacon was made with a different secret.
var ErrMAC = errors.New("beacon with the MAC of a different secret")

var errBeacon = errors.New("malformed beacon")

// Encode returns the packet, with a MAC by key.
func (b Beacon) Encode(key []byte) []byte {
	kind := "seeking"
	if b.Hosting {
		kind = "hosting"
	}
	line := strings.Join([]string{
		protocol.Magic, kind, b.Public, b.ID, wire.Word(b.Host), wire.FormatAddrs(b.Addrs),
	}, " ")
	return []byte(line + " " + mac(key, line))
}

func mac(key []byte, line string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(line))
	return hex.EncodeToString(h.Sum(nil))
}

// Parse parses a packet and verifies its MAC with key. With ErrMAC it returns the unverified
// content of the beacon too. For the beacon of another version the error is a
// *protocol.VersionError, and the result has only what all versions have in common.
func Parse(packet, key []byte) (Beacon, error) {
	if len(packet) > maxLen {
		return Beacon{}, errBeacon
	}
	end := bytes.LastIndexByte(packet, ' ')
	words := strings.Split(string(packet), " ")
	if v := protocol.VersionOf(words[0]); v != 0 && v != protocol.Version {
		return parseOther(words, string(packet[:max(end, 0)]), key, v)
	}
	if len(words) != 7 || words[0] != protocol.Magic ||
		words[1] != "hosting" && words[1] != "seeking" {
		return Beacon{}, errBeacon
	}
	b := Beacon{
		Hosting: words[1] == "hosting", Public: words[2], ID: words[3], Host: wire.Word(words[4]),
	}
	var err error
	b.Addrs, err = wire.ParseAddrs(words[5])
	if err != nil || !isHex(b.Public, secret.PublicLen) || !isHex(b.ID, idLen) {
		return Beacon{}, errBeacon
	}
	if !hmac.Equal([]byte(words[6]), []byte(mac(key, string(packet[:end])))) {
		return b, ErrMAC
	}
	return b, nil
}

// parseOther parses what the beacons of all versions have in common: the place of the public name
// and the host, and a MAC of all that is before it as the last word.
func parseOther(words []string, line string, key []byte, version int) (Beacon, error) {
	if len(words) < 6 || !isHex(words[2], secret.PublicLen) ||
		!hmac.Equal([]byte(words[len(words)-1]), []byte(mac(key, line))) {
		return Beacon{}, errBeacon
	}
	b := Beacon{Public: words[2], Host: wire.Word(words[4])}
	return b, &protocol.VersionError{Other: version}
}

func isHex(text string, bytes int) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == bytes && text == strings.ToLower(text)
}
