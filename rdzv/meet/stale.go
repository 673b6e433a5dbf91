package meet

import (
	"os"
	"path/filepath"
	"strings"

	"rdzv/internal/filelock"
)

// Prefixes of the names of this package's files in the runtime directory. Each file is locked as
// long as an agent needs it.
const (
	hostLockPrefix = "rdzv-host-"
	sharedPrefix   = "rdzv-shared-"
)

// RemoveStale removes this package's files that killed agents have left in a runtime directory:
// those that nobody has locked. It may also remove a file that another agent has created and not
// yet locked; that agent then creates another one.
func RemoveStale(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name := e.Name()
		own := strings.HasPrefix(name, hostLockPrefix) || strings.HasPrefix(name, sharedPrefix)
		if own && e.Type().IsRegular() {
			removeUnlocked(filepath.Join(dir, name))
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
