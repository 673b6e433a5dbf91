package reportfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"rdzv/cmd/rdzv/internal/outfile"
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
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("the file system or the reader does not respond: %w", os.ErrDeadlineExceeded)
	}
	return fmt.Errorf("cannot write the report %q: %w", path, outfile.Cause(err))
}

// writeReport replaces a regular file, so that no reader sees a partial report. Anything else is
// opened and written until the deadline.
func writeReport(path string, b []byte, deadline time.Time) error {
	target, ok, err := outfile.Replaceable(path)
	switch {
	case err != nil:
		return err
	case ok:
		return outfile.Replace(target, b)
	}
	f, err := outfile.Append(path)
	if err != nil {
		return err
	}
	_ = f.SetWriteDeadline(deadline) // only a pipe has one
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// replaceReport replaces a regular file and leaves anything else as it is: the reader of a FIFO
// expects one report.
func replaceReport(path string, b []byte, _ time.Time) error {
	target, ok, err := outfile.Replaceable(path)
	if ok {
		err = outfile.Replace(target, b)
	}
	return err
}

// addReport is replaceReport unless the file is about the same failure: the worker's agent, which
// knows more, has written it.
func addReport(path string, b []byte, _ time.Time) error {
	target, ok, err := outfile.Replaceable(path)
	if !ok {
		return err
	}
	if old, err := os.ReadFile(target); err == nil && sameFailure(old, b) {
		return nil
	}
	return outfile.Replace(target, b)
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
