package meet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

var errLocked = errors.New("this agent has the lock")

// electByLock lets the agent host that gets the lock first. The kernel frees the lock with its holder, however that ends, so the
// others keep trying it while they look for the store.
func electByLock(ctx context.Context, s *session, p *plan) (*Meeting, error) {
	l := &lock{path: filepath.Join(s.RuntimeDir, fmt.Sprintf("store-%x-%d.lock", p.public, p.ports[0]))}
	m, err := s.lookOrLock(ctx, p, l)
	if !errors.Is(err, errLocked) {
		return m, err
	}
	if m, err = s.hostAt(ctx, p); err != nil {
		l.release()
		return nil, err
	}
	m.background(func(ctx context.Context) { <-ctx.Done(); l.release() })
	return m, nil
}

// lookOrLock looks for the store until it is found, or until this agent has the lock (errLocked).
func (s *session) lookOrLock(ctx context.Context, p *plan, l *lock) (*Meeting, error) {
	if locked, err := l.try(); locked {
		return nil, errLocked
	} else if err != nil {
		return nil, err
	}
	looking, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() {
		for looking.Err() == nil {
			pause(looking, lastWait)
			if looking.Err() != nil {
				return
			}
			if locked, _ := l.try(); locked { // it could be opened at first; if not now, the store may still be found
				cancel(errLocked)
			}
		}
	})
	return s.look(looking, p)
}

// A lock is a file that its holder has locked, and removes before it lets go.
type lock struct {
	path string
	file *os.File // while it is held
}

// try takes the lock if nobody has it. A file that its holder removed while it was being opened is no lock any more.
func (l *lock) try() (bool, error) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return false, fmt.Errorf("cannot open lock %q: %w", l.path, cause(err))
	}
	if tryLock(f) && isAt(f, l.path) {
		l.file = f
		return true, nil
	}
	f.Close()
	return false, nil
}

func isAt(f *os.File, path string) bool {
	opened, err := f.Stat()
	there, errThere := os.Lstat(path)
	return err == nil && errThere == nil && os.SameFile(opened, there)
}

func (l *lock) release() {
	os.Remove(l.path)
	l.file.Close()
}

func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
