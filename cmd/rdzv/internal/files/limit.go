package files

import (
	"errors"
	"os"
	"time"
)

// Timeout is how long file systems that do not respond may delay a command, all together. From a
// signal on it is afterSignal.
const (
	Timeout     = 4 * time.Second
	afterSignal = time.Second
	// least is how long each use may take if there is no time left: the file may be on another file
	// system, which responds.
	least = 100 * time.Millisecond
)

// ErrSlow says that Limit.Do has not waited any longer.
var ErrSlow = errors.New("the file system or the reader does not respond")

// Limit is the time that file systems which do not respond, for example because their server is
// down, may still take from a command. One goroutine may use it at a time.
type Limit struct {
	// Signals ends the waiting, after a last second; nil if nothing does.
	Signals <-chan os.Signal

	spent time.Duration
}

// Do returns what use returns, which reads or writes files. It returns ErrSlow when the time is
// over, or limit: then use continues until the process ends, because the kernel offers no way to
// stop it.
func (l *Limit) Do(limit time.Duration, use func() error) error {
	for len(l.Signals) > 0 {
		<-l.Signals // it has already been acted on
	}
	began := time.Now()
	defer func() { l.spent += time.Since(began) }()
	used := make(chan error, 1)
	go func() { used <- use() }()
	late := time.NewTimer(max(min(limit, Timeout-l.spent), least))
	defer late.Stop()
	for {
		select {
		case err := <-used:
			return err
		case <-late.C:
			return ErrSlow
		case <-l.Signals:
			late.Reset(afterSignal)
			l.spent = Timeout
		}
	}
}
