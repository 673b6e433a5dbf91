package host

import (
	"context"
	"time"
)

// SlowAfter is when a file system is reported that does not respond.
const SlowAfter = 3 * time.Second

// Await returns what use returns, which reads or writes files. If their file system does not
// respond it calls slow after 3 s, and returns at the end of ctx, with its cause: then use
// continues until the process ends, because the kernel offers no way to stop it.
func Await[T any](ctx context.Context, slow func(), use func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	used := make(chan result, 1)
	go func() {
		value, err := use()
		used <- result{value, err}
	}()
	late := time.NewTimer(SlowAfter)
	defer late.Stop()
	for {
		select {
		case r := <-used:
			return r.value, r.err
		case <-late.C:
			slow()
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}
