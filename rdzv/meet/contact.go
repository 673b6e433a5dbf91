package meet

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"rdzv/rdzv/secret"
)

// planContact makes a plan with the key that rank 0 has generated. With --insecure the key only
// provides the public name of the job.
func planContact(c *Config, key secret.Key) (*plan, error) {
	p, err := planFor(c, &key)
	if err == nil && c.Insecure {
		p.key = nil
	}
	return p, err
}

// failed is the value that rank 0 puts if it cannot host the store.
const failed = "failed"

var (
	errContact = errors.New("cannot use the value that rank 0 has put through PMI")
	errRank0   = errors.New("rank 0's agent cannot host the store")
)

// maxContact is the maximum length of a contact in bytes. Every PMI implementation accepts values
// of that length.
const maxContact = 1000

// formatContact returns the value that rank 0 puts, KEY;PORT;ADDR,ADDR with as many addresses as
// fit. Port 0 means the port sequence.
func formatContact(key secret.Key, addrs []netip.Addr, port uint16) string {
	text := fmt.Sprintf("%s;%d;", key.Reveal(), port)
	for i, a := range addrs {
		if i > 0 {
			text += ","
		}
		if len(text)+len(a.String()) > maxContact {
			break
		}
		text += a.String()
	}
	return strings.TrimSuffix(text, ",")
}

// parseContact parses the result of formatContact. Errors do not repeat the text.
func parseContact(text string) (key secret.Key, addrs []netip.Addr, port int, err error) {
	if text == failed {
		return secret.Key{}, nil, 0, errRank0
	}
	words := strings.Split(text, ";")
	if len(words) != 3 {
		return secret.Key{}, nil, 0, errContact
	}
	key, err = secret.ParseKey(words[0])
	port, err2 := strconv.Atoi(words[1])
	if err != nil || err2 != nil || port < 0 || port > 65535 {
		return secret.Key{}, nil, 0, errContact
	}
	for word := range strings.SplitSeq(words[2], ",") {
		a, err := netip.ParseAddr(word)
		if err != nil {
			return secret.Key{}, nil, 0, errContact
		}
		addrs = append(addrs, a)
	}
	return key, addrs, port, nil
}

// addressesOf returns the addresses without their ports.
func addressesOf(list []netip.AddrPort) []netip.Addr {
	var addrs []netip.Addr
	for _, a := range list {
		addrs = append(addrs, a.Addr())
	}
	return addrs
}
