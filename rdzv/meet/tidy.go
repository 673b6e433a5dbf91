package meet

import (
	"os"
	"path/filepath"
	"strings"

	"rdzv/internal/filelock"
)

// What agents have in the runtime directory beside their stores. Each is locked for as long as
// somebody needs it.
const (
	hostLockPrefix = "rdzv-host-"
	sharedPrefix   = "rdzv-shared-"
)

// Tidy removes from a user's runtime directory what agents have left that were killed: files that
// nobody has locked. One that has just been made and not yet locked may go too; its maker then
// makes another.
func Tidy(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type().IsRegular() && (strings.HasPrefix(e.Name(), hostLockPrefix) || strings.HasPrefix(e.Name(), sharedPrefix)) {
			removeUnlocked(filepath.Join(dir, e.Name()))
		}
	}
}

func removeUnlocked(path string) {
	f, err := filelock.Open(path, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if f.TryLock() == nil && f.Named() {
		os.Remove(path)
	}
}
