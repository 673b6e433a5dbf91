package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// within writes the report and returns at the deadline even if the file system hangs, for example
// because its server is down: then a goroutine continues until the process ends. After the next
// signal it waits for interruptedTimeout at most.
func within(
	deadline time.Time, signals <-chan os.Signal,
	path string, b []byte, write func(string, []byte, time.Time) error,
) error {
	written := make(chan error, 1)
	go func() { written <- write(path, b, deadline) }()
	err := os.ErrDeadlineExceeded
	select {
	case err = <-written:
	case <-time.After(time.Until(deadline)):
	case <-signals:
		select {
		case err = <-written:
		case <-time.After(interruptedTimeout):
		}
	}
	var named *fs.PathError
	var renamed *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENXIO):
		err = errors.New("no process has it open for reading")
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("the file system or the reader does not respond: %w", os.ErrDeadlineExceeded)
	case errors.As(err, &named):
		err = named.Err
	case errors.As(err, &renamed):
		err = renamed.Err
	}
	return fmt.Errorf("cannot write the report %q: %w", path, err)
}

// writeReport replaces a regular file, so that no reader sees a partial report. Anything else is
// opened and written until the deadline.
func writeReport(path string, b []byte, deadline time.Time) error {
	if target, ok := replaceable(path); ok {
		return replace(target, b)
	}
	return writeInto(path, b, deadline)
}

// replaceReport replaces a regular file and leaves anything else as it is: the reader of a FIFO
// expects one report.
func replaceReport(path string, b []byte, _ time.Time) error {
	if target, ok := replaceable(path); ok {
		return replace(target, b)
	}
	return nil
}

// addReport is replaceReport unless the file is about the same failure: the worker's agent, which
// knows more, has written it.
func addReport(path string, b []byte, _ time.Time) error {
	target, ok := replaceable(path)
	if !ok {
		return nil
	}
	if old, err := os.ReadFile(target); err == nil && sameFailure(old, b) {
		return nil
	}
	return replace(target, b)
}

// sameFailure tells whether two reports are about the same worker of the same attempt.
func sameFailure(a, b []byte) bool {
	type worker struct {
		Job, Host    string
		Attempt, PID int
	}
	var v, w worker
	return json.Unmarshal(a, &v) == nil && json.Unmarshal(b, &w) == nil && v == w && v.PID != 0
}

// replaceable returns the regular, or not yet existing, file that path names after following links;
// ok is false for anything else. /dev/stdout and other names of open file descriptors are not
// replaceable: the file can contain the program's output.
func replaceable(path string) (target string, ok bool) {
	name := filepath.Clean(path)
	if name == "/dev/stdout" || name == "/dev/stderr" ||
		strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/") {
		return "", false
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil { // it does not exist, or is a dangling link
		target = path
	}
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return target, true
	}
	return target, err == nil && info.Mode().IsRegular()
}

// replace renames a new file to path. If the directory does not permit that, it overwrites the
// existing file.
func replace(path string, b []byte) error {
	aside := filepath.Join(filepath.Dir(path), ".rdzv-report-"+rand.Text())
	err := create(aside, path, b)
	if err == nil {
		err = os.Rename(aside, path)
	}
	if err == nil {
		return nil
	}
	os.Remove(aside)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EBUSY) {
		return os.WriteFile(path, b, 0o666)
	}
	return err
}

// create creates the file aside with the mode of the file that it will replace.
func create(aside, path string, b []byte) error {
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if before, notThere := os.Stat(path); notThere == nil {
		err = f.Chmod(before.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(b)
	}
	return errors.Join(err, f.Close())
}

// writeInto appends to something that is not a regular file. A FIFO without a reader is an error
// (ENXIO) instead of a wait without end.
func writeInto(path string, b []byte, deadline time.Time) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o666)
	if err != nil {
		return err
	}
	_ = f.SetWriteDeadline(deadline) // only a pipe has one
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
