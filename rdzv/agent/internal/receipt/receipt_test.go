package receipt

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A receipt counts once, if it comes shortly before or while it is awaited.
func TestAwait(t *testing.T) {
	const usr1, usr2 = syscall.SIGUSR1, syscall.SIGUSR2
	for name, c := range map[string]struct {
		signal syscall.Signal
		after  time.Duration // when it is received, after the wait has begun
		want   bool
	}{
		"before":         {usr1, -time.Second, true},
		"long before":    {usr1, -Life - time.Millisecond, false},
		"meanwhile":      {usr1, 150 * time.Millisecond, true},
		"too late":       {usr1, 250 * time.Millisecond, false},
		"another signal": {usr2, 150 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, now := New([]syscall.Signal{usr1, usr2}), time.Now()
				never := make(chan struct{})
				if c.after < 0 {
					r.Note(c.signal, now.Add(c.after))
				} else {
					time.AfterFunc(c.after, func() { r.Note(c.signal, time.Now()) })
				}
				if got := r.Await(usr1, 200*time.Millisecond, never); got != c.want {
					t.Errorf("received: %t, want %t", got, c.want)
				}
				if c.want && r.Await(usr1, 0, never) {
					t.Error("it counts twice")
				}
				synctest.Wait()
			})
		})
	}
	stop := make(chan struct{})
	close(stop)
	if New(nil).Await(usr1, time.Hour, stop) {
		t.Error("received: true, although nothing was")
	}
}
