package meet

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"rdzv/internal/filelock"
)

// A shared does things once for all agents on this host.
type shared struct {
	dir     string       // the runtime directory; "" if there is none
	onLeave func(func()) // registers a function that is called when the agent leaves
}

// maxShared is the maximum size of a shared result in bytes.
const maxShared = 1 << 24

// oncePerNode calls do in one of the agents on this host, and returns its result in all of them. If
// do fails or its result is empty, the next agent calls do. The file with the result remains, and
// locked, until the first of the job's agents leaves.
func (s shared) oncePerNode(
	ctx context.Context, name string, do func() ([]byte, error),
) ([]byte, error) {
	if s.dir == "" {
		return do()
	}
	path := filepath.Join(s.dir, sharedPrefix+name)
	f, err := filelock.Open(path, os.O_CREATE)
	if err != nil {
		return do()
	}
	s.onLeave(func() {
		os.Remove(path)
		f.Close()
	})
	for ; ctx.Err() == nil; pause(ctx, firstWait) {
		if f.TryShare() == nil {
			text, err := io.ReadAll(io.NewSectionReader(f, 0, maxShared))
			if err == nil && len(text) > 0 {
				return text, nil
			}
		}
		if f.TryLock() == nil {
			return write(f, do)
		}
	}
	return nil, ctx.Err()
}

// write writes the result of do to the locked file and lets the other agents read it.
func write(f filelock.File, do func() ([]byte, error)) ([]byte, error) {
	text, err := do()
	if err == nil {
		_, err = f.Write(text)
	}
	if err != nil || len(text) == 0 {
		_ = f.Unlock()
		return text, err
	}
	_ = f.TryShare()
	return text, nil
}
