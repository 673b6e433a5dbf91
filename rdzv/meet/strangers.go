package meet

import (
	"errors"
	"slices"
	"sync"

	"rdzv/rdzv/meet/internal/gate"
)

// strangers are those who may be the user's own but have another key, over as many stores as this
// agent looks for.
type strangers struct {
	notify func(Notice)
	mu     sync.Mutex
	list   []gate.Rejection
}

// tell tells the user of each once.
func (s *strangers) tell(who gate.Rejection) {
	if s.new(who) {
		s.notify(noticeOf(who))
	}
}

// noticeOf says what keeps a stranger out.
func noticeOf(who gate.Rejection) interface {
	Notice
	error
} {
	if errors.Is(who.Reason, gate.ErrDifferentJob) {
		return DifferentCommand{Host: who.Host, Addr: who.Addr}
	}
	return DifferentToken{Host: who.Host, Addr: who.Addr}
}

// maxStrangers bounds what is said and remembered of strangers: they may be many, and mean no good.
const maxStrangers = 16

func (s *strangers) new(who gate.Rejection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(w gate.Rejection) bool { return w.Addr == who.Addr || w.Host != "" && w.Host == who.Host }
	if len(s.list) == maxStrangers || slices.ContainsFunc(s.list, same) {
		return false
	}
	s.list = append(s.list, who)
	return true
}

func (s *strangers) known() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []error
	for _, who := range s.list {
		known = append(known, noticeOf(who))
	}
	return known
}
