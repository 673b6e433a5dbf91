package wrap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// defaultPath is what execvp(3) of glibc takes where the environment has no PATH.
const defaultPath = "/bin:/usr/bin"

// FindError says why a program cannot be run.
type FindError struct {
	Name string // as asked for
	Path string // the file that cannot be run, "" if there is none
	Err  error  // why; syscall.ENOENT where there is no such file
	code int
}

// Error is one line.
func (e *FindError) Error() string {
	if e.Path == "" || e.Path == e.Name {
		return fmt.Sprintf("cannot run %q: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("cannot run %q (%s): %v", e.Name, e.Path, e.Err)
}

// Unwrap returns Err.
func (e *FindError) Unwrap() error { return e.Err }

// ExitCode is what a shell would exit with: 127 where something is not there, 126 where it cannot be executed.
func (e *FindError) ExitCode() int { return e.code }

// Find returns the file that a worker with environment env and working directory dir ("" is this process's own) gets
// for name, as execvp(3) does: a name with a slash is a path, taken from dir; any other is looked for in env's PATH,
// whose relative entries are taken from dir. The result can be Worker.Path. Errors are *FindError.
func Find(name string, env []string, dir string) (string, error) {
	if info, err := os.Stat(orDot(dir)); err != nil || !info.IsDir() {
		return "", &FindError{name, dir, fmt.Errorf("no working directory: %w", syscall.ENOENT), 127}
	}
	if strings.Contains(name, "/") {
		file, err := candidate(name, name, dir)
		if err != nil {
			return "", err
		}
		return file, nil
	}
	if name == "" {
		return "", &FindError{name, "", errors.New("no program named"), 127}
	}
	return inPath(name, pathOf(env), dir)
}

func orDot(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// pathOf is the PATH of env: the first one, as getenv(3) finds it.
func pathOf(env []string) string {
	for _, e := range env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			return path
		}
	}
	return defaultPath
}

// inPath goes through path. A file that cannot be executed does not end the search, but is what a failure tells of. An
// entry that cannot be looked into, such as another user's ~/bin that su has left in PATH, has none.
func inPath(name, path, dir string) (string, error) {
	failure := &FindError{name, "", fmt.Errorf("not found in PATH %q", path), 127}
	for _, entry := range strings.Split(path, ":") {
		if entry == "" {
			entry = "." // an empty entry is the working directory
		}
		file, err := candidate(name, entry+"/"+name, dir)
		if err == nil {
			return file, nil
		}
		if failure.Path == "" && err.Path != "" && exists(err.Path) && !errors.Is(err, errDirectory) {
			failure = err
		}
	}
	return "", failure
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

var errDirectory = errors.New("is a directory")

// candidate looks at one file, taken from dir, and at the interpreter that it names if it is a script: the kernel's own
// error would blame the script.
func candidate(name, file, dir string) (string, *FindError) {
	file = from(dir, file)
	switch code, err := executable(file); {
	case code == 127:
		return "", &FindError{name, "", err, code}
	case err != nil:
		return "", &FindError{name, file, err, code}
	}
	if by := interpreter(file); by != "" {
		if code, err := executable(from(dir, by)); err != nil {
			return "", &FindError{name, file, fmt.Errorf("its interpreter %q: %w", by, err), code}
		}
	}
	return file, nil
}

// executable reports why file cannot be executed, and the code that a shell gives then.
func executable(file string) (code int, err error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOTDIR):
		return 126, bare(err)
	case err != nil:
		return 127, bare(err)
	case info.IsDir():
		return 126, errDirectory
	case !info.Mode().IsRegular():
		return 126, errors.New("is no regular file")
	}
	if err := unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS); err != nil {
		return 126, err
	}
	return 0, nil
}

// from takes a relative file from dir.
func from(dir, file string) string {
	if dir == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// bare takes the operation and the path off an error: the message names the file itself.
func bare(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// interpreter is the program that file names behind "#!"; "" if file is no script or cannot be read (it may be executable
// without being readable). The kernel looks at 256 bytes.
func interpreter(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	line, ok := bytes.CutPrefix(head[:n], []byte("#!"))
	if !ok {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 {
		return ""
	}
	return string(words[0])
}
