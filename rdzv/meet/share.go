package meet

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"rdzv/internal/filelock"
)

// A shared is what agents on this host do once for all of them.
type shared struct {
	dir   string       // the runtime directory; "" is none
	onEnd func(func()) // has a function called when the agent leaves
}

// maxShared is the most that is read of what another agent has found out, in bytes.
const maxShared = 1 << 24

// oncePerNode lets one of the agents on this host do something for all; the others wait for it and
// read what came out. The file stays until the job's first agent here leaves, and each that has
// read it holds it until it leaves itself: see Tidy.
func (s shared) oncePerNode(ctx context.Context, name string, do func() ([]byte, error)) ([]byte, error) {
	if s.dir == "" {
		return do()
	}
	file := filepath.Join(s.dir, sharedPrefix+name)
	f, err := filelock.Open(file, os.O_CREATE)
	if err != nil {
		return do()
	}
	s.onEnd(func() {
		os.Remove(file)
		f.Close()
	})
	for ; ctx.Err() == nil; pause(ctx, firstWait) {
		if f.TryShare() == nil {
			if text, err := io.ReadAll(io.NewSectionReader(f, 0, maxShared)); err == nil && len(text) > 0 {
				return text, nil
			}
		}
		if f.TryLock() == nil {
			return share(f, do)
		}
	}
	return nil, ctx.Err()
}

// share writes what came out, and lets the others read it; if nothing came out, the next of them
// asks.
func share(f filelock.File, do func() ([]byte, error)) ([]byte, error) {
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
