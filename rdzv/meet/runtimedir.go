package meet

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rdzv/internal/filelock"
)

// sharedPrefix begins the names of files with what one agent has found out for all of its host.
// Each file is locked as long as an agent needs it.
const sharedPrefix = "rdzv-shared-"

// RemoveStale removes this package's files that killed agents have left in a runtime directory:
// those that nobody has locked. It may also remove a file that another agent has created and not
// yet locked; that agent then creates another one. proc is /proc.
func RemoveStale(proc fs.FS, dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name := e.Name()
		if e.Type() == fs.ModeSocket && leftByKeeper(proc, dir, name) {
			os.Remove(filepath.Join(dir, name))
		}
		if !strings.HasPrefix(name, sharedPrefix) || !e.Type().IsRegular() {
			continue
		}
		f, err := filelock.Open(filepath.Join(dir, name), 0)
		if err != nil {
			continue
		}
		if f.TryLock() == nil && f.Named() {
			os.Remove(f.Name())
		}
		f.Close()
	}
}

// maxShared is the maximum size of a shared result in bytes.
const maxShared = 1 << 24

// oncePerNode calls do in one of the agents on this host, and returns its result in all of them. If
// do fails or its result is empty, the next agent calls do. The file with the result remains in the
// runtime directory, and locked, until the first of the job's agents leaves (onLeave).
func oncePerNode(
	ctx context.Context, dir, name string, onLeave func(func()), do func() ([]byte, error),
) ([]byte, error) {
	if dir == "" {
		return do()
	}
	path := filepath.Join(dir, sharedPrefix+name)
	f, err := filelock.Open(path, os.O_CREATE)
	if err != nil {
		return do()
	}
	onLeave(func() {
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
