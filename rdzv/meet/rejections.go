package meet

import (
	"errors"
	"slices"
	"sync"

	"rdzv/rdzv/meet/internal/gate"
)

// maxRejections limits the memory and the number of reports, because anybody on the network can
// cause rejections.
const maxRejections = 16

// rejections collects the agents, probably of the same user, that have a different key.
type rejections struct {
	notify func(Notice)
	mu     sync.Mutex
	list   []gate.Rejection
}

// add reports a rejection, but each agent only once.
func (rs *rejections) add(r gate.Rejection) {
	if rs.isNew(r) {
		rs.notify(noticeOf(r))
	}
}

func (rs *rejections) isNew(r gate.Rejection) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	same := func(known gate.Rejection) bool {
		return known.Addr == r.Addr || known.Host != "" && known.Host == r.Host
	}
	if len(rs.list) == maxRejections || slices.ContainsFunc(rs.list, same) {
		return false
	}
	rs.list = append(rs.list, r)
	return true
}

func (rs *rejections) errors() []error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var list []error
	for _, r := range rs.list {
		list = append(list, noticeOf(r))
	}
	return list
}

// noticeOf returns what is reported about a rejection.
func noticeOf(r gate.Rejection) interface {
	Notice
	error
} {
	if errors.Is(r.Reason, gate.ErrDifferentJob) {
		return DifferentCommand{Host: r.Host, Addr: r.Addr}
	}
	return DifferentToken{Host: r.Host, Addr: r.Addr}
}
