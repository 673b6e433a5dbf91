package postmortem

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const errorFilePrefix = "rdzv-error-"

// NameErrorFile returns the path at which a worker that uses torch's @record is to write why it
// failed. dir is the runtime directory, which only this user can access. The agent does not create
// the file; torch does when the program raises an exception. So a killed agent leaves no file,
// unless its worker failed just before.
//
// The agent cannot know what a wrapper around the program does. An absolute path with a random name
// names the same file in another PID namespace, and never another process's file. If the directory
// is invisible (other mount namespace) or inaccessible (other user), torch cannot write the file;
// see withoutRecording.
func NameErrorFile(dir string) (string, error) {
	dir, err := filepath.Abs(dir) // the worker may change its working directory
	if err != nil {
		return "", fmt.Errorf("cannot name an error file: %w", err)
	}
	return filepath.Join(dir, errorFilePrefix+rand.Text()), nil
}

// maxErrorFile bounds what is read of an error file.
const maxErrorFile = 1 << 20

// readErrorFile returns what the worker wrote: one line that names the exception, and the traceback
// if there is one. Both are "" if it wrote nothing that torch's errors module (torch 1.9 to 2.9)
// would accept.
func readErrorFile(path string) (line, traceback string) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", ""
	}
	b, err := io.ReadAll(io.LimitReader(f, maxErrorFile))
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
		json.Unmarshal(outer.Message,
			&inner.Message) // the short form; anything else leaves it empty
	}
	line, _, _ = strings.Cut(strings.TrimSpace(inner.Message), "\n")
	return line, strings.TrimSpace(inner.ExtraInfo.Stack)
}

// withoutRecording removes torch's own failure to write the error file from a traceback. Python
// prints it after the exception that was to be recorded.
func withoutRecording(lines []string) []string {
	during := lastIndex(lines, func(line string) bool {
		return strings.Contains(line,
			"During handling of the above exception, another exception occurred:")
	})
	recording := func(line string) bool { return strings.HasSuffix(line, ", in record_exception") }
	if during < 0 || !slices.ContainsFunc(lines[during:], recording) {
		return lines
	}
	for during > 0 && strings.TrimSpace(lines[during-1]) == "" {
		during--
	}
	return lines[:during]
}

// errorFileAge is the age from which on an error file is left over: a worker that has written one
// ends soon after, and its agent then removes the file.
const errorFileAge = 24 * time.Hour

// RemoveOldFiles removes from the runtime directory what the workers of killed agents have left
// there.
func RemoveOldFiles(dir string, now time.Time) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), errorFilePrefix) {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > errorFileAge {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
