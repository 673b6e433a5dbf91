// Package refusals notes which agents cannot join a job because of their token or version.
package refusals

import (
	"slices"
	"sync"

	"rdzv/rdzv/meet"
)

// List has the names of the agents. The zero List is empty.
type List struct {
	mu               sync.Mutex
	tokens, versions []string
}

// Note notes the agent of which n tells, unless that agent hosts a store and has refused this one.
func (l *List) Note(n meet.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch other := n.(type) {
	case meet.DifferentToken:
		if !other.Hosting {
			l.tokens = append(l.tokens, other.Agent())
		}
	case meet.DifferentVersion:
		if !other.Hosting {
			l.versions = append(l.versions, other.Agent())
		}
	}
}

// ByToken are the agents with other tokens.
func (l *List) ByToken() []string { return l.copied(&l.tokens) }

// ByVersion are the agents of other versions.
func (l *List) ByVersion() []string { return l.copied(&l.versions) }

func (l *List) copied(list *[]string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(*list)
}
