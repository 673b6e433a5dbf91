package meet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/meet/internal/hosts"
)

// errOtherStore is the reason of a rejection for which DifferentStore is reported.
var errOtherStore = errors.New("hosts another store")

// noPeerAfter is how long an agent without a launcher waits for the first other agent before it
// reports NoPeerYet.
const noPeerAfter = 3 * time.Second

// reportNoPeerYet reports after noPeerAfter how other nodes can find this one, unless another agent
// has connected or ctx has ended. ps is nil without a search by multicast.
func reportNoPeerYet(
	ctx context.Context, c *Config, m *Meeting, rs *rejections, ps *peers,
) {
	if !pause(ctx, noPeerAfter) || m.gate.Passed() || ps != nil && len(ps.connected()) > 0 {
		return
	}
	n := NoPeerYet{Waited: record.Seconds(noPeerAfter), JoinLine: m.JoinLine(), Secret: m.Key != nil}
	found := rs.notices() // agents that do not belong to the job explain why it is alone
	if ps != nil {
		heard, _ := ps.lastHeard()
		n.NoBeacon = heard == "" && len(found) == 0
	}
	switch usable, err := c.usableInterfaces(); {
	case len(found) > 0:
		n.Explained = true
	case c.Store == "":
		n.Store = m.Addr.Addr()
	case m.Addr.Addr().IsLoopback() && err == nil && len(usable) > 0:
		n.Store, n.Loopback = hosts.Addresses(usable)[0], c.Store
	default:
		n.Hint = "the other nodes need the same command, the same --nodes and " +
			"--store " + c.Store
	}
	if len(found) > 0 && !slices.ContainsFunc(found, isToken) {
		n.JoinLine = ""
	}
	c.Notify(n)
}

// maxRejections limits the memory and the number of reports, because anybody on the network can
// cause rejections.
const maxRejections = 16

// rejections collects the agents, probably of the same user, that have a different key.
type rejections struct {
	own    string // name of this host
	notify func(Notice)
	mu     sync.Mutex
	list   []gate.Rejection
}

// add reports a rejection, but only one of each host, and tells whether it has. Another job there
// does not hide an agent of another version.
func (rs *rejections) add(r gate.Rejection) bool {
	same := func(known gate.Rejection) bool {
		there := known.Addr == r.Addr || known.Host != "" && known.Host == r.Host
		return there && isVersion(known.Reason) == isVersion(r.Reason)
	}
	rs.mu.Lock()
	isNew := len(rs.list) < maxRejections && !slices.ContainsFunc(rs.list, same)
	if isNew {
		rs.list = append(rs.list, r)
	}
	rs.mu.Unlock()
	if isNew {
		rs.notify(noticeOf(r))
	}
	return isNew
}

// explain reports whether an agent of the job was reported that has a different token or version.
func (rs *rejections) explain() bool {
	return slices.ContainsFunc(rs.notices(), func(n Rejected) bool {
		_, version := n.(DifferentVersion)
		return version || isToken(n)
	})
}

func isVersion(err error) bool {
	_, is := errors.AsType[*protocol.VersionError](err)
	return is
}

func isToken(n Rejected) bool { _, is := n.(DifferentToken); return is }

// notices are about those that can be why no agent of the job has been found: not another job of
// the user on this host, since agents of one job are on different hosts.
func (rs *rejections) notices() (list []Rejected) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.list {
		if !rs.here(r) {
			list = append(list, noticeOf(r))
		}
	}
	return list
}

// here tells whether the rejection is that of another job on this host.
func (rs *rejections) here(r gate.Rejection) bool {
	return errors.Is(r.Reason, gate.ErrDifferentJob) && r.Host == rs.own
}

// noticeOf returns what is reported about a rejection.
func noticeOf(r gate.Rejection) Rejected {
	switch {
	case errors.Is(r.Reason, gate.ErrDifferentJob):
		return DifferentCommand{Host: r.Host, Addr: r.Addr}
	case r.Reason == errOtherStore:
		return DifferentStore{Host: r.Host, Addr: r.Addr}
	}
	if v, is := errors.AsType[*protocol.VersionError](r.Reason); is {
		return DifferentVersion{
			Host: r.Host, Addr: r.Addr, Protocol: v.Other, Own: protocol.Version,
			Hosting: r.Hosting, Shared: v.Shared,
		}
	}
	return DifferentToken{
		Host: r.Host, Addr: r.Addr, Hosting: r.Hosting, Shared: r.Reason == gate.ErrOtherShared,
	}
}
