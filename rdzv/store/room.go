package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What a store takes of its disk at the start, so that it needs no more, where its
// job is not a very large one, when that is full: room for the database, whose file
// is made with some kilobytes, beside the two segments that the log always has.
const (
	databaseRoom = 2 << 20
	room         = databaseRoom + 2*segment
)

// enoughRoom asks beforehand, for on a full disk etcd does not return an error.
func enoughRoom(dir string) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil || disk.Blocks == 0 {
		return nil // how much room there is is not known
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < room {
		return fmt.Errorf("cannot start the store in %q: %d kB are free there, %d kB are needed: %w", dir, free>>10, room>>10, unix.ENOSPC)
	}
	return nil
}

// reserve takes the room for etcd's database. The blocks lie behind the end of the
// file until it grows.
func reserve(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "member", "snap", "db"), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot find the database: %w", err)
	}
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, databaseRoom)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("cannot take %d kB: %w", databaseRoom>>10, err)
	}
	return nil // other file systems have no way to do it
}
