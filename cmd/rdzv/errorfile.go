package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// errorFile is where a worker that uses torch's @record writes why it failed. It
// is a file of this process's memory, which the worker opens by its name under
// /proc: there is nothing on a disk that could be left behind.
type errorFile struct{ file *os.File }

func newErrorFile() (*errorFile, error) {
	fd, err := unix.MemfdCreate("rdzv-error-file", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot make an error file: %w", err)
	}
	return &errorFile{os.NewFile(uintptr(fd), "error file")}, nil
}

// path is the value of TORCHELASTIC_ERROR_FILE.
func (e *errorFile) path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), e.file.Fd())
}

func (e *errorFile) close() { e.file.Close() }

// maxErrorFile bounds what is read of an error file.
const maxErrorFile = 1 << 20

// message is what the worker wrote: one line that names the exception, and the
// traceback if there is one. Both are empty if it wrote nothing that torch's
// errors module (torch 1.9 to 2.9) would read back.
func (e *errorFile) message() (line, traceback string) {
	b, err := io.ReadAll(io.NewSectionReader(e.file, 0, maxErrorFile))
	if err != nil {
		return "", ""
	}
	return parseErrorFile(b)
}

// parseErrorFile reads {"message": TEXT} or {"message": {"message": TEXT,
// "extraInfo": {"py_callstack": TRACEBACK}}}.
func parseErrorFile(b []byte) (line, traceback string) {
	var outer struct{ Message json.RawMessage }
	if json.Unmarshal(b, &outer) != nil {
		return "", ""
	}
	var inner struct {
		Message   string
		ExtraInfo struct {
			Stack string `json:"py_callstack"`
		}
	}
	if json.Unmarshal(outer.Message, &inner) != nil {
		json.Unmarshal(outer.Message, &inner.Message) // the short form; anything else leaves it empty
	}
	line, _, _ = strings.Cut(strings.TrimSpace(inner.Message), "\n")
	return line, strings.TrimSpace(inner.ExtraInfo.Stack)
}
