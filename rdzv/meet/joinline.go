package meet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"rdzv/rdzv/secret"
)

// joinLine is the plan for RDZV_JOIN: the first node has printed the address of the store and the
// key. --store may be given too, as on the first node.
func joinLine(c *Config) (*plan, error) {
	addrs, key, err := parseJoin(c.Join)
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
	p.sources = nil
	for i, a := range addrs {
		p.sources = append(p.sources, fixed("", i, []netip.Addr{a.Addr()}, []int{int(a.Port())}))
	}
	p.hint = "is the node that printed RDZV_JOIN still waiting, " +
		"and does its firewall allow this port?"
	p.otherServiceHint = "another service uses that port now: " +
		"use the RDZV_JOIN that the first node of this job has printed"
	return p, nil
}

// hostAtOnce is the plan for an agent that is known to host the store.
func hostAtOnce(c *Config) (*plan, error) {
	p, err := planByToken(c)
	if err == nil {
		p.hosting = true
	}
	return p, err
}

// byJoin is byRank for an agent that has RDZV_JOIN and --store, unless they name different stores.
// A name can resolve to an address that is not the one in RDZV_JOIN, but also of the first node:
// the store tells on which addresses it listens.
func byJoin(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
	c := l.config
	host, port, err := ParseStore(c.Store)
	if err != nil {
		return nil, err
	}
	joins, _, _ := parseJoin(c.Join) // as in joinLine
	join := joins[0]
	other := &OtherStoreError{Join: join, Store: c.Store}
	literal, notAddr := netip.ParseAddr(host)
	own, _ := ownStoreAddrs(ctx, c, host)
	ownJoin, _ := c.ownAddrs([]netip.Addr{join.Addr()})
	switch here := len(own) > 0; {
	case port != 0 && port != int(join.Port()), here && len(ownJoin) == 0,
		!here && notAddr == nil && literal.Unmap() != join.Addr() && len(c.Net) == 0:
		return nil, other
	}
	m, err := byRank(ctx, l, p)
	if err != nil || len(own) > 0 {
		return m, err
	}
	resolving, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	named, err := c.resolve(resolving, host)
	listens := func(a netip.Addr) bool { return slices.Contains(addressesOf(m.Addrs), a) }
	if err == nil && !slices.Contains(named, join.Addr()) && !slices.ContainsFunc(named, listens) {
		m.release()
		return nil, other
	}
	return m, nil
}

// An OtherStoreError means that RDZV_JOIN and --store name different stores.
type OtherStoreError struct {
	Join  netip.AddrPort // in RDZV_JOIN
	Store string         // --store
}

func (e *OtherStoreError) Error() string {
	return fmt.Sprintf("cannot use RDZV_JOIN: it names the store at %s, and --store %q "+
		"another one", e.Join, e.Store)
}

// Hint says what to do.
func (e *OtherStoreError) Hint() string { return "unset RDZV_JOIN or omit --store" }

// parseJoin parses ADDR:PORT/KEY, where /KEY may be missing, and further addresses may follow the
// first one, each after a comma. Errors do not repeat the text.
func parseJoin(text string) (addrs []netip.AddrPort, key *secret.Key, err error) {
	list, keyText, found := strings.Cut(strings.TrimSpace(text), "/")
	for address := range strings.SplitSeq(list, ",") {
		addr, err := netip.ParseAddrPort(address)
		if err != nil || addr.Port() == 0 || addr.Addr().IsUnspecified() {
			return nil, nil, errors.New("not ADDR:PORT/KEY")
		}
		addrs = append(addrs, netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()))
	}
	if !found {
		return addrs, nil, nil
	}
	parsed, err := secret.ParseKey(keyText)
	return addrs, &parsed, err
}
