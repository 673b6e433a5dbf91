package meet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"rdzv/internal/filelock"
	"rdzv/rdzv/meet/internal/gate"
)

var errLocked = errors.New("this agent has the lock")

// A hostLock decides which agent of a host hosts. The kernel frees it with its holder, however that ends.
type hostLock struct {
	path string
	f    *filelock.File
	held bool
}

func (s *session) hostLock(p *plan) *hostLock {
	return &hostLock{path: filepath.Join(s.RuntimeDir, fmt.Sprintf("%s%x-%d", hostLockPrefix, p.public, p.ports[0]))}
}

// try takes the lock if it is free. A holder removes the file when it leaves, so a lock on a file that has lost its name is none.
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

// electByLock lets the agent host that gets the lock first; the others keep trying it while they look for the store.
func electByLock(ctx context.Context, s *session, p *plan) (*Meeting, error) {
	lock := s.hostLock(p)
	m, err := s.lookOrLock(ctx, p, lock)
	if !errors.Is(err, errLocked) {
		lock.release()
		return m, err
	}
	if m, err = s.hostAt(ctx, p); err != nil {
		lock.release()
		return nil, s.sayWho(ctx, p, err)
	}
	m.onRelease(lock.release)
	return m, nil
}

// askingWho is how long to wait for who has our port to show what it is.
const askingWho = time.Second

// sayWho adds to the error that the port which the user named is taken what it is taken by, if that shows.
func (s *session) sayWho(ctx context.Context, p *plan, err error) error {
	if !p.named || !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	d, bad := gate.NewDialer(p.key, p.public, s.Host)
	if bad != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askingWho)
	defer cancel()
	conn, _, why := d.Dial(ctx, netip.AddrPortFrom(p.addrs[0], uint16(p.ports[0])))
	var service gate.ServiceError
	switch {
	case why == nil:
		conn.Close() // of agents with another runtime directory
		return fmt.Errorf("%w (by a store of this job)", err)
	case errors.Is(why, ErrOtherJob):
		return fmt.Errorf("%w (by the store of another job)", err)
	case errors.Is(why, ErrOtherToken):
		return fmt.Errorf("%w (by a store of this job with another token)", err)
	case errors.As(why, &service):
		return fmt.Errorf("%w (by %s)", err, string(service))
	}
	return err
}

// lookOrLock looks for the store until it is found, or until this agent has the lock (errLocked).
func (s *session) lookOrLock(ctx context.Context, p *plan, lock *hostLock) (*Meeting, error) {
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
	return s.look(looking, p)
}
