package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Check returns why nothing could be appended to the file at path, or, if it may be replaced, why
// it could not be replaced either; nil if it is likely that it can. It neither creates nor opens
// that file: other agents may use it, and a FIFO may get its reader later.
func Check(path string, replace bool) error {
	target, err := follow(path)
	if err != nil {
		return Cause(err)
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkDirectory(target)
	case err != nil:
		return Cause(err)
	case info.IsDir():
		return unix.EISDIR
	}
	err = access(target, unix.W_OK)
	if err != nil && replace && info.Mode().IsRegular() && checkDirectory(target) == nil {
		parent, failed := os.Stat(directory(target))
		if failed == nil && !foreign(parent, info) {
			return nil
		}
	}
	return err
}

// checkDirectory creates a file in the directory of path and removes it: /proc and a user's quota
// refuse a file where access(2) says that it could be created.
func checkDirectory(path string) error {
	f, err := os.CreateTemp(directory(path)+".", ".rdzv-")
	if err != nil {
		return Cause(err)
	}
	return Cause(errors.Join(f.Close(), os.Remove(f.Name())))
}

func access(path string, mode uint32) error {
	return unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
}

// Same tells whether two paths name one regular file, or one that does not exist yet. Nothing that
// is written to a device or a FIFO replaces anything.
func Same(a, b string) bool {
	fileA, okA, _ := Replaceable(a)
	fileB, okB, _ := Replaceable(b)
	if !okA || !okB {
		return false
	}
	infoA, missingA := os.Stat(fileA)
	infoB, missingB := os.Stat(fileB)
	if missingA == nil && missingB == nil {
		return os.SameFile(infoA, infoB)
	}
	return missingA != nil && missingB != nil && absolute(fileA) == absolute(fileB)
}

// Opened tells whether path names the regular file f, which is open.
func Opened(path string, f *os.File) bool {
	target, ok, _ := Replaceable(path)
	if !ok {
		return false
	}
	info, missing := os.Stat(target)
	open, closed := f.Stat()
	return missing == nil && closed == nil && os.SameFile(info, open)
}

// absolute is path without links in its directory, as far as that exists.
func absolute(path string) string {
	dir := directory(path)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	return filepath.Join(dir, filepath.Base(path))
}
