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
	lock, err := s.openLock(p)
	if err != nil {
		return nil, err
	}
	m, err := s.lookOrLock(ctx, p, lock)
	if !errors.Is(err, errLocked) {
		lock.Close()
		return m, err
	}
	if m, err = s.hostAt(ctx, p); err != nil {
		lock.Close()
		return nil, err
	}
	m.background(func(ctx context.Context) { <-ctx.Done(); lock.Close() })
	return m, nil
}

// lookOrLock looks for the store until it is found, or until this agent has the lock (errLocked).
func (s *session) lookOrLock(ctx context.Context, p *plan, lock *os.File) (*Meeting, error) {
	if tryLock(lock) {
		return nil, errLocked
	}
	looking, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() {
		for looking.Err() == nil {
			pause(looking, lastWait)
			if looking.Err() == nil && tryLock(lock) {
				cancel(errLocked)
			}
		}
	})
	return s.look(looking, p)
}

func (s *session) openLock(p *plan) (*os.File, error) {
	name := filepath.Join(s.RuntimeDir, fmt.Sprintf("store-%x-%d.lock", p.public, p.ports[0]))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open lock %q: %w", name, cause(err))
	}
	return f, nil
}

func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
