package wrap

import (
	"sync"

	"rdzv/wrap/internal/tee"
)

// Line knows whether what workers have written to their standard error ends within a line, as far
// as Run copies it: a progress bar, for example. The zero value is ready to use, and is shared by
// all that write to the same file, one after another.
type Line struct {
	mu     sync.Mutex
	within bool
	tails  []tee.Tail // which know it of what the watchdog copies
}

// End reports whether it does, and takes the line for ended: the caller is about to do that.
func (l *Line) End() (within bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	within, l.within = l.within, false
	for _, t := range l.tails {
		within = t.EndLine() || within
	}
	return within
}

// set records it for what this process has copied.
func (l *Line) set(within bool) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.within = within
	}
}

func (l *Line) add(t tee.Tail) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tails = append(l.tails, t)
	}
}

// release is called before the first of its tails is closed.
func (l *Line) release() {
	if l != nil {
		within := l.End()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.within, l.tails = within, nil
	}
}
