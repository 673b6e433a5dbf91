package meet

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"rdzv/rdzv/secret"
)

// joinLine is the plan for RDZV_JOIN: the first node has printed the address of the store and the
// key.
func joinLine(c *Config) (*plan, error) {
	addr, key, err := parseJoin(c.Join)
	if err != nil {
		return nil, fmt.Errorf("cannot use RDZV_JOIN: %w", err)
	}
	if c.Insecure {
		key = nil
	} else if key == nil {
		return nil, errors.New("cannot use RDZV_JOIN: no /KEY at the end")
	}
	p, err := planFor(c, key)
	if err != nil {
		return nil, err
	}
	p.hosting, p.named = false, true
	p.sources = []source{fixed("", 0, []netip.Addr{addr.Addr()}, []int{int(addr.Port())})}
	p.hint = "is the node that printed RDZV_JOIN still waiting, " +
		"and does its firewall allow this port?"
	p.otherServiceHint = "another service uses that port now: " +
		"use the RDZV_JOIN that the first node of this job has printed"
	return p, nil
}

// parseJoin parses ADDR:PORT/KEY, where /KEY may be missing. Errors do not repeat the text.
func parseJoin(text string) (netip.AddrPort, *secret.Key, error) {
	address, keyText, found := strings.Cut(strings.TrimSpace(text), "/")
	addr, err := netip.ParseAddrPort(address)
	if err != nil || addr.Port() == 0 || addr.Addr().IsUnspecified() {
		return netip.AddrPort{}, nil, errors.New("not ADDR:PORT/KEY")
	}
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	if !found {
		return addr, nil, nil
	}
	key, err := secret.ParseKey(keyText)
	return addr, &key, err
}
