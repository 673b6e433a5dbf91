package meet

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"

	"rdzv/rdzv/meet/internal/wire"
	"rdzv/rdzv/secret"
)

// A beacon is what an agent calls out on the local network: that it is here, and where it would host or does host the store.
// It is one line of text, with a MAC that only a holder of the secret can make:
//
//	rdzv1 hosting PUBLIC ID HOST ADDR:PORT,ADDR:PORT MAC
type beacon struct {
	hosting bool   // it hosts the store; else it looks for others itself ("seeking")
	public  string // the job's public name, in hex
	id      string // of the agent, 32 hex digits; the lowest hosts
	host    string // its host's name, for messages
	addrs   []netip.AddrPort
}

// maxBeacon is how long a beacon may be, in bytes: it fits into one packet of any network.
const maxBeacon = 1200

var (
	errBeacon    = errors.New("not a beacon")
	errBeaconMAC = errors.New("a beacon made with another secret")
)

func (b beacon) encode(key []byte) []byte {
	kind := "seeking"
	if b.hosting {
		kind = "hosting"
	}
	line := strings.Join([]string{wire.Magic, kind, b.public, b.id, wire.Word(b.host), wire.FormatAddrs(b.addrs)}, " ")
	return []byte(line + " " + mac(key, line))
}

func mac(key []byte, line string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(line))
	return hex.EncodeToString(h.Sum(nil))
}

// parseBeacon reads one packet. With errBeaconMAC the beacon is returned too, as what somebody claims.
func parseBeacon(packet, key []byte) (beacon, error) {
	end := bytes.LastIndexByte(packet, ' ')
	words := strings.Split(string(packet), " ")
	if len(packet) > maxBeacon || len(words) != 7 || words[0] != wire.Magic || words[1] != "hosting" && words[1] != "seeking" {
		return beacon{}, errBeacon
	}
	b := beacon{hosting: words[1] == "hosting", public: words[2], id: words[3], host: wire.Word(words[4])}
	if !isHex(b.public, secret.PublicLen) || !isHex(b.id, 16) {
		return beacon{}, errBeacon
	}
	var err error
	if b.addrs, err = wire.ParseAddrs(words[5]); err != nil {
		return beacon{}, errBeacon
	}
	if !hmac.Equal([]byte(words[6]), []byte(mac(key, string(packet[:end])))) {
		return b, errBeaconMAC
	}
	return b, nil
}

func isHex(text string, bytes int) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == bytes && text == strings.ToLower(text)
}
