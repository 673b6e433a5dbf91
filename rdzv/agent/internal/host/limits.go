package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rdzv/internal/hint"
)

// CheckFiles checks whether so many more files can be opened. Without this check the Go runtime and
// etcd would end the process with a stack trace. do is what the files are needed for, for the
// error, such as "start 4 workers".
func CheckFiles(do string, needed int) error {
	if do != "" {
		do = "cannot " + do + ": "
	}
	limit, open := openFiles()
	if limit-open >= needed {
		return nil
	}
	return hint.With(
		fmt.Errorf("%sopen-file limit too low: %d (%d needed)", do, limit, open+needed),
		fmt.Sprintf("raise the limit with ulimit -n %d, if the hard limit (ulimit -Hn) permits",
			max(1024, 2*needed)),
	)
}

// openFiles are how many files this process may have open, and how many it has.
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

// CheckAddressSpace checks whether this process may use so many bytes of addresses (ulimit -v).
// Without this check the Go runtime would end the process with a stack trace.
func CheckAddressSpace(needed uint64) error {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &r); err != nil || r.Cur >= needed {
		return nil
	}
	return hint.With(
		fmt.Errorf("address-space limit too low: %d kB (%d kB needed)", r.Cur>>10, needed>>10),
		"raise the limit with ulimit -v unlimited, if the hard limit (ulimit -Hv) permits",
	)
}
