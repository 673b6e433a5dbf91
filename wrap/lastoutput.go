package wrap

import (
	"sync"
	"sync/atomic"
	"time"
)

// LastOutput is when a worker has last written something. The zero value is ready to use.
type LastOutput struct {
	mu sync.Mutex
	at func() int64 // in Unix nanoseconds, 0 if it has not; nil if that is not known
	in *int64       // where Run notes it too; nil is nowhere
}

// LastOutputIn returns one that Run also notes in *in, in Unix nanoseconds, by sync/atomic: in
// memory that another process reads. It must remain valid even after Run has returned.
func LastOutputIn(in *int64) *LastOutput { return &LastOutput{in: in} }

// Follow makes l what another process notes in *in.
func (l *LastOutput) Follow(in *int64) {
	l.setSource(func() int64 { return atomic.LoadInt64(in) })
}

// Keep ends Follow: l does not change any more.
func (l *LastOutput) Keep() {
	if l != nil {
		at := l.nanoseconds()
		l.setSource(func() int64 { return at })
	}
}

// Time returns the time, which is zero if the worker has written nothing or that is not known.
func (l *LastOutput) Time() time.Time {
	if at := l.nanoseconds(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

func (l *LastOutput) nanoseconds() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		return 0
	}
	return l.at()
}

func (l *LastOutput) setSource(at func() int64) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.at = at
	}
}

// memory is where Run notes it too.
func (l *LastOutput) memory() *int64 {
	if l == nil {
		return nil
	}
	return l.in
}
