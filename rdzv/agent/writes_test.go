package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A write waits for a store that does not answer for some time, for example because its host is
// stopped: how a worker ended, or that a signal has ended the job, must not be lost.
func TestWritesAreNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		write := func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				t.Errorf("given up after %v", time.Since(began))
			case <-time.After(time.Hour):
			}
			return nil
		}
		(&reporter{}).write(write)
		in := &interrupts{}
		in.write(func(ctx context.Context) { _ = write(ctx) })
		in.wg.Wait()
	})
}
