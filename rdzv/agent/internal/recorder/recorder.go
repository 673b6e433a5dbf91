// Package recorder lets the flight recorder of torch's NCCL backend write what it has recorded.
// Each process reads a FIFO, which it has made itself, about once a second; any byte makes it write
// its file.
package recorder

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Files are those of one process. The zero value is a process without a flight recorder.
type Files struct {
	Dump string // what it writes
	Pipe string // the FIFO; "" if it has none
}

// Of are the files of a rank, by its variables in torch: the beginnings of the two paths.
func Of(dump, pipe string, rank int) (f Files) {
	if dump != "" && pipe != "" {
		f = Files{dump + strconv.Itoa(rank), pipe + strconv.Itoa(rank) + ".pipe"}
	}
	return f
}

// Trigger asks the process to write its file, and tells whether there is one that reads the FIFO.
func (f Files) Trigger() bool {
	if f.Pipe == "" {
		return false
	}
	fifo, err := os.OpenFile(f.Pipe, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false // nobody reads it, or it does not exist
	}
	defer fifo.Close()
	if info, err := fifo.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return false
	}
	_, err = fifo.WriteString("1")
	return err == nil
}

// Written tells whether the file has been written since some time, and is not written any more.
func (f Files) Written(since, now time.Time) bool {
	info, err := os.Stat(f.Dump)
	return err == nil && info.Size() > 0 && !info.ModTime().Before(since.Truncate(time.Second)) &&
		now.Sub(info.ModTime()) > settle
}

// settle is how long a file that is complete has not changed.
const settle = 500 * time.Millisecond

// Remove removes the FIFO, which the process has left.
func (f Files) Remove() {
	if info, err := os.Lstat(f.Pipe); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		os.Remove(f.Pipe)
	}
}

// CheckFIFO tells whether there can be FIFOs in a directory: torch ends the process if it cannot
// make its own.
func CheckFIFO(dir string) error {
	host, _ := os.Hostname()
	path := filepath.Join(dir, fmt.Sprintf(".fifo.%s.%d", host, os.Getpid()))
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return fmt.Errorf("cannot make a FIFO in %q: %w", dir, err)
	}
	return os.Remove(path)
}
