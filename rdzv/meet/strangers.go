package meet

import (
	"slices"
	"sync"
)

// strangers are those who may be the user's own but have another key, over as many stores as this agent looks for.
type strangers struct {
	say  func(string)
	mu   sync.Mutex
	list []Stranger
}

// tell tells the user of each once.
func (s *strangers) tell(who Stranger) {
	if s.new(who) {
		s.say(who.String())
	}
}

// maxStrangers bounds what is said and remembered of strangers: they may be many, and mean no good.
const maxStrangers = 16

func (s *strangers) new(who Stranger) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(w Stranger) bool { return w.Addr == who.Addr || w.Host != "" && w.Host == who.Host }
	if len(s.list) == maxStrangers || slices.ContainsFunc(s.list, same) {
		return false
	}
	s.list = append(s.list, who)
	return true
}

func (s *strangers) known() []Stranger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}
