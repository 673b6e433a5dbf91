package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// CheckFiles asks beforehand whether something can be done for which so many files
// are needed, for where no file can be opened any more the Go runtime and etcd end
// the process with a stack trace.
func CheckFiles(do string, needed int) error {
	if do != "" {
		do = "cannot " + do + ": "
	}
	limit, open := openFiles()
	if limit-open >= needed {
		return nil
	}
	return hinted{
		fmt.Errorf("%sopen-file limit too low: %d (%d needed)", do, limit, open+needed),
		fmt.Sprintf("ulimit -n %d raises the limit, where the hard limit (ulimit -Hn) allows it", max(1024, 2*needed)),
	}
}

// openFiles tells how many files this process may have open, and how many it has.
func openFiles() (limit, open int) {
	const unlimited = 1 << 30
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return unlimited, 0 // the limit is not known
	}
	limit = int(min(r.Cur, unlimited))
	list, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, unix.EMFILE) {
		return limit, limit
	}
	return limit, len(list)
}
