package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, returned := 0, make(chan bool, 1)
		report := func() { slow++ }
		use := func(d time.Duration) func() (int, error) {
			return func() (int, error) {
				ctx, cancel := context.WithTimeout(context.Background(), d)
				defer cancel()
				<-ctx.Done()
				returned <- true
				return 7, nil
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		if n, err := Await(ctx, report, use(time.Second)); n != 7 || err != nil || slow != 0 {
			t.Errorf("got %d, %v, reported %d times; want 7, nil, 0", n, err, slow)
		}
		<-returned
		if n, err := Await(ctx, report, use(time.Minute)); n != 7 || err != nil || slow != 1 {
			t.Errorf("slow: got %d, %v, reported %d times; want 7, nil, 1", n, err, slow)
		}
		<-returned
		signal := errors.New("signal")
		time.AfterFunc(time.Second, func() { cancel(signal) })
		if n, err := Await(ctx, report, use(time.Minute)); n != 0 || err != signal || slow != 1 {
			t.Errorf("interrupted: got %d, %v, reported %d times; want 0, signal, 1", n, err, slow)
		}
		<-returned // it has continued
	})
}
