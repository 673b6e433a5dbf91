package host

import "golang.org/x/sys/unix"

// DirectoryRemoved tells whether the working directory of this process was removed. If it cannot be
// reached from the root directory, as in some containers, getcwd(2) does not find it either.
func DirectoryRemoved() bool {
	var st unix.Stat_t
	return unix.Stat(".", &st) == nil && st.Nlink == 0
}
