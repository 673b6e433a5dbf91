package outfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLinks is the kernel's limit, path_resolution(7).
const maxLinks = 40

// follow returns what path names after following the symbolic links of its last element, whether
// that exists or not, but does not follow names of open file descriptors.
//
// A link in a directory where everyone can create files, such as /tmp, is followed only if it
// belongs to this user or to the owner of the directory. Else another user who knows the path could
// choose which file of this user is written. That is the kernel's rule if fs.protected_symlinks is
// 1, proc_sys_fs(5), but the kernel does not apply it to readlink and rename.
func follow(path string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if isDescriptor(path) || err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, nil // what is wrong with it is found when it is opened
		}
		dir := directory(path)
		if err := checkLink(dir, info); err != nil {
			return "", err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if path = to; !filepath.IsAbs(to) {
			path = dir + to
		}
	}
	return "", unix.ELOOP
}

func checkLink(dir string, link fs.FileInfo) error {
	parent, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if foreign(parent, link) {
		return fmt.Errorf("it is a link of another user (%d) in a directory where everyone can create "+
			"files", owner(link))
	}
	return nil
}

// foreign tells whether a file in a directory where everyone can create files belongs neither to
// this user nor to the owner of the directory.
func foreign(dir, file fs.FileInfo) bool {
	shared := dir.Mode()&fs.ModeSticky != 0 && dir.Mode().Perm()&0o002 != 0
	return shared && owner(file) != os.Geteuid() && owner(file) != owner(dir)
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
