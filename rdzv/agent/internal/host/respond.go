package host

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// Unresponsive is the first of the directories or files whose file system has not responded when
// ctx ends, such as that of a file server that is down; "" if all have. A file that does not exist
// is no reason. What does not respond keeps a thread until the process ends, see [Await].
func Unresponsive(ctx context.Context, paths []string) string {
	hung := make([]bool, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() {
			_, err := Await(ctx, func() {}, func() (struct{}, error) {
				var s unix.Statfs_t
				return struct{}{}, unix.Statfs(path, &s)
			})
			hung[i] = errors.Is(err, context.DeadlineExceeded)
		})
	}
	wg.Wait()
	for i, path := range paths {
		if hung[i] {
			return path
		}
	}
	return ""
}
