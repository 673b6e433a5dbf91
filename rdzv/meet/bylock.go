package meet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"rdzv/internal/filelock"
)

var errLocked = errors.New("this agent has the lock")

// A hostLock decides which agent of a host hosts. The kernel frees it with its holder, however that
// ends.
type hostLock struct {
	path string
	f    *filelock.File
	held bool
}

func newHostLock(dir string, p *plan) *hostLock {
	return &hostLock{path: filepath.Join(dir, fmt.Sprintf("%s%x-%d", hostLockPrefix, p.public, p.ports[0]))}
}

// try takes the lock if it is free. A holder removes the file when it leaves, so a lock on a file
// that has lost its name is none.
func (l *hostLock) try() (bool, error) {
	if l.f == nil {
		f, err := filelock.Open(l.path, os.O_CREATE)
		if err != nil {
			if bare, ok := errors.AsType[*fs.PathError](err); ok {
				err = bare.Err
			}
			return false, fmt.Errorf("cannot open lock %q: %w", l.path, err)
		}
		l.f = &f
	}
	if l.f.TryLock() != nil {
		return false, nil
	}
	if !l.f.Named() {
		l.release()
		return false, nil
	}
	l.held = true
	return true, nil
}

func (l *hostLock) release() {
	if l.held {
		os.Remove(l.path)
	}
	if l.f != nil {
		l.f.Close()
	}
	l.f, l.held = nil, false
}

// byLock lets the agent host that gets the lock first; the others keep trying it while they look
// for the store.
func byLock(dir string) election {
	return func(ctx context.Context, j *joiner, p *plan) (*Meeting, error) {
		lock := newHostLock(dir, p)
		m, err := lookOrLock(ctx, j, p, lock)
		if !errors.Is(err, errLocked) {
			lock.release()
			return m, err
		}
		if m, err = j.hostAt(ctx, p); err != nil {
			lock.release()
			return nil, j.sayWho(ctx, p, err)
		}
		m.unlock = lock.release
		return m, nil
	}
}

// lookOrLock looks for the store until it is found, or until this agent has the lock (errLocked).
func lookOrLock(ctx context.Context, j *joiner, p *plan, lock *hostLock) (*Meeting, error) {
	if got, err := lock.try(); err != nil {
		return nil, err
	} else if got {
		return nil, errLocked
	}
	looking, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() {
		for looking.Err() == nil {
			pause(looking, lastWait)
			if got, _ := lock.try(); got {
				cancel(errLocked)
			}
		}
	})
	return j.look(looking, p)
}
