package files

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Files that do not respond take no more than Timeout from a command altogether, and no more than a
// second after a signal.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		l := Limit{Signals: signals}
		hangs := func() error { <-t.Context().Done(); return nil }
		took := func(limit, want time.Duration) {
			t.Helper()
			began := time.Now()
			err := l.Do(limit, hangs)
			if took := time.Since(began); err != ErrSlow || took != want {
				t.Errorf("%v after %v, want %v after %v", err, took, ErrSlow, want)
			}
		}
		signals <- syscall.SIGTERM // before
		took(time.Second, time.Second)
		took(Timeout, Timeout-time.Second)
		took(Timeout, least)
		l = Limit{Signals: signals}
		time.AfterFunc(time.Second, func() { signals <- syscall.SIGTERM })
		took(Timeout, 2*time.Second)
		took(Timeout, least)
		failed := errors.New("failed")
		if err := l.Do(Timeout, func() error { return failed }); err != failed {
			t.Errorf("got %v, want %v", err, failed)
		}
	})
}
