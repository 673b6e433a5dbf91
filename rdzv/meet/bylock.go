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

var errLocked = errors.New("this agent has the host lock")

// A hostLock determines which agent on a host hosts the store. The kernel releases it when its
// holder ends.
type hostLock struct {
	path string
	f    *filelock.File
	held bool
}

func newHostLock(dir string, p *plan) *hostLock {
	name := fmt.Sprintf("%s%x-%d", hostLockPrefix, p.public, p.ports[0])
	return &hostLock{path: filepath.Join(dir, name)}
}

// try takes the lock if it is free. The holder removes the file when it releases the lock, so a
// lock on a removed file does not count.
func (l *hostLock) try() (bool, error) {
	if l.f == nil {
		f, err := filelock.Open(l.path, os.O_CREATE)
		if err != nil {
			if withPath, ok := errors.AsType[*fs.PathError](err); ok {
				err = withPath.Err
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

// byLock is the election among the agents on one host: the agent that has the host lock hosts. The
// others try to get the lock while they search for the store.
func byLock(dir string) election {
	return func(ctx context.Context, l *locator, p *plan) (*Meeting, error) {
		lock := newHostLock(dir, p)
		m, err := findOrLock(ctx, l, p, lock)
		if !errors.Is(err, errLocked) {
			lock.release()
			return m, err
		}
		if m, err = l.hostStore(ctx, p); err != nil {
			lock.release()
			return nil, l.explainPortInUse(ctx, p, err)
		}
		m.unlock = lock.release
		return m, nil
	}
}

// findOrLock searches for the store until it is found or this agent has the lock (errLocked).
func findOrLock(ctx context.Context, l *locator, p *plan, lock *hostLock) (*Meeting, error) {
	if locked, err := lock.try(); err != nil {
		return nil, err
	} else if locked {
		return nil, errLocked
	}
	searching, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() {
		for searching.Err() == nil {
			pause(searching, lastWait)
			if locked, _ := lock.try(); locked {
				cancel(errLocked)
			}
		}
	})
	return l.findStore(searching, p)
}
