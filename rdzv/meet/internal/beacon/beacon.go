package beacon

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"

	"rdzv/rdzv/meet/internal/wire"
	"rdzv/rdzv/secret"
)

// A Beacon is what an agent calls out on the local network: that it is here, and where it would
// host or does host the store. It is one line of text, with a MAC that only a holder of the secret
// can make:
//
//	rdzv1 hosting PUBLIC ID HOST ADDR:PORT,ADDR:PORT MAC
type Beacon struct {
	Hosting bool   // it hosts the store; else it looks for others itself ("seeking")
	Public  string // the job's public name, in hex
	ID      string // of the agent, 32 hex digits; the lowest hosts
	Host    string // its host's name, for messages
	Addrs   []netip.AddrPort
}

// NewID makes the id of an agent.
func NewID() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// maxLen is how long a beacon may be, in bytes: it fits into one packet of any network.
const maxLen = 1200

// ErrMAC is a beacon that another secret has made.
var ErrMAC = errors.New("a beacon made with another secret")

var errBeacon = errors.New("not a beacon")

// Encode writes the packet, with a MAC made with key.
func (b Beacon) Encode(key []byte) []byte {
	kind := "seeking"
	if b.Hosting {
		kind = "hosting"
	}
	line := strings.Join([]string{wire.Magic, kind, b.Public, b.ID, wire.Word(b.Host), wire.FormatAddrs(b.Addrs)}, " ")
	return []byte(line + " " + mac(key, line))
}

func mac(key []byte, line string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(line))
	return hex.EncodeToString(h.Sum(nil))
}

// Parse reads one packet. With ErrMAC the beacon is returned too, as what somebody claims.
func Parse(packet, key []byte) (Beacon, error) {
	end := bytes.LastIndexByte(packet, ' ')
	words := strings.Split(string(packet), " ")
	if len(packet) > maxLen || len(words) != 7 || words[0] != wire.Magic || words[1] != "hosting" && words[1] != "seeking" {
		return Beacon{}, errBeacon
	}
	b := Beacon{Hosting: words[1] == "hosting", Public: words[2], ID: words[3], Host: wire.Word(words[4])}
	if !isHex(b.Public, secret.PublicLen) || !isHex(b.ID, 16) {
		return Beacon{}, errBeacon
	}
	var err error
	if b.Addrs, err = wire.ParseAddrs(words[5]); err != nil {
		return Beacon{}, errBeacon
	}
	if !hmac.Equal([]byte(words[6]), []byte(mac(key, string(packet[:end])))) {
		return b, ErrMAC
	}
	return b, nil
}

func isHex(text string, bytes int) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == bytes && text == strings.ToLower(text)
}
