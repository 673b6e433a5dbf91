// Package pernode lets one of the agents on a host find something out for all of them.
package pernode

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rdzv/internal/filelock"
)

// prefix begins the names of files with what one agent has found out for all of its host.
// Each file is locked as long as an agent needs it.
const prefix = "rdzv-shared-"

// RemoveStale removes such files that killed agents have left in a runtime directory: those that
// nobody has locked. It may also remove a file that another agent has created and not yet locked;
// that agent then creates another one.
func RemoveStale(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.Type().IsRegular() {
			continue
		}
		f, err := filelock.Open(filepath.Join(dir, e.Name()), 0)
		if err != nil {
			continue
		}
		if f.TryLock() == nil && f.Named() {
			os.Remove(f.Name())
		}
		f.Close()
	}
}

// maxResult is the maximum size of a shared result in bytes.
const maxResult = 1 << 24

// Once calls do in one of the agents on this host, and returns its result in all of them. If
// do fails or its result is empty, the next agent calls do. The file with the result remains in the
// runtime directory, and locked, until the first of the job's agents leaves (onLeave).
func Once(
	ctx context.Context, dir, name string, onLeave func(func()), do func() ([]byte, error),
) ([]byte, error) {
	if dir == "" {
		return do()
	}
	path := filepath.Join(dir, prefix+name)
	f, err := filelock.Open(path, os.O_CREATE)
	if err != nil {
		return do()
	}
	onLeave(func() {
		os.Remove(path)
		f.Close()
	})
	for ; ctx.Err() == nil; pause(ctx) {
		if f.TryShare() == nil {
			text, err := io.ReadAll(io.NewSectionReader(f, 0, maxResult))
			if err == nil && len(text) > 0 {
				return text, nil
			}
		}
		if f.TryLock() != nil {
			continue
		}
		text, err := do()
		if err == nil {
			_, err = f.Write(text)
		}
		if err == nil && len(text) > 0 {
			_ = f.TryShare() // the other agents can read it
		} else {
			_ = f.Unlock()
		}
		return text, err
	}
	return nil, ctx.Err()
}

// pause waits between two looks at the file, or until ctx ends.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}
