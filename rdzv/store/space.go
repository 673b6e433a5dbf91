package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The disk space that a store takes at the start, so that a job that is not very large can go on
// when the disk becomes full: space for the database, whose file is created with a few kilobytes,
// and the two segments that the write-ahead log always has.
const (
	segment       = 1 << 20
	databaseSpace = 2 << 20
	space         = databaseSpace + 2*segment
)

// checkSpace checks the free space before the start, because etcd returns no error on a full disk.
func checkSpace(dir string) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil || disk.Blocks == 0 {
		return nil // the free space is not known
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < space {
		const format = "cannot start the store in %q: %d kB are free there, %d kB are needed: %w"
		return fmt.Errorf(format, dir, free>>10, space>>10, unix.ENOSPC)
	}
	return nil
}

// reserve allocates the space of etcd's database. The blocks lie beyond the end of the file until
// it grows.
func reserve(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "member", "snap", "db"), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot open the database: %w", err)
	}
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, databaseSpace)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("cannot allocate %d kB for the database: %w", databaseSpace>>10, err)
	}
	return nil // any other error: the file system does not support fallocate
}
