package wrap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rdzv/internal/shell"
)

// defaultPath is the PATH that execvp(3) of glibc uses if the environment has none.
const defaultPath = "/bin:/usr/bin"

// FindError is why a program cannot be run.
type FindError struct {
	Name string // as passed to Find
	Path string // the file that cannot be run; "" if there is none
	Err  error  // the reason
	code int
}

// Error is a single line.
func (e *FindError) Error() string {
	if e.Path == "" || e.Path == e.Name {
		return fmt.Sprintf("cannot run %q: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("cannot run %q (%s): %v", e.Name, e.Path, e.Err)
}

// Unwrap returns Err.
func (e *FindError) Unwrap() error { return e.Err }

// ExitCode is the exit code that a shell reports: 127 if the program or its interpreter does not
// exist, 126 if it cannot be executed.
func (e *FindError) ExitCode() int { return e.code }

// Find returns the file that execvp(3) would execute for name in a process with the environment env
// and the working directory dir, where "" is that of this process. A name with a slash is a path,
// resolved in dir; any other name is searched for in the PATH of env, whose relative entries are
// resolved in dir. The result can be used as Worker.Path. Errors are *FindError.
func Find(name string, env []string, dir string) (string, error) {
	if info, err := os.Stat(from(dir, ".")); err != nil || !info.IsDir() {
		err := fmt.Errorf("working directory %q: %w", dir, syscall.ENOENT)
		return "", &FindError{name, "", err, 127}
	}
	if strings.Contains(name, "/") {
		file := from(dir, name)
		if err := check(name, file, dir); err != nil {
			return "", err
		}
		return file, nil
	}
	if name == "" {
		return "", &FindError{name, "", errors.New("the program name is empty"), 127}
	}
	dirs := defaultPath
	isPath := func(e string) bool { return strings.HasPrefix(e, "PATH=") }
	if i := slices.IndexFunc(env, isPath); i >= 0 { // the first one, as getenv(3)
		dirs = strings.TrimPrefix(env[i], "PATH=")
	}
	return inPath(name, dirs, dir)
}

// inPath searches dirs, a PATH. A file that cannot be executed does not end the search but is the
// reason of the error. A directory that cannot be searched is skipped, such as another user's ~/bin
// that su has left in PATH.
func inPath(name, dirs, dir string) (string, error) {
	failure := &FindError{name, "", fmt.Errorf("not found in PATH %s", shell.Path(dirs)), 127}
	for entry := range strings.SplitSeq(dirs, ":") {
		if entry == "" {
			entry = "." // the working directory (execvp(3))
		}
		file := from(dir, entry+"/"+name)
		err := check(name, file, dir)
		if err == nil {
			return file, nil
		}
		if failure.Path == "" && err.Path != "" && !errors.Is(err, errDirectory) {
			if _, hidden := os.Stat(file); hidden == nil {
				failure = err
			}
		}
	}
	return "", failure
}

var errDirectory = errors.New("is a directory")

// check checks the file that was found for name in dir. For a script it checks the interpreter too:
// the error of the kernel would be the same as for a missing script.
func check(name, file, dir string) *FindError {
	switch code, err := executable(file); {
	case code == 127:
		return &FindError{name, "", err, code}
	case err != nil:
		return &FindError{name, file, err, code}
	}
	line := firstLine(file)
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 {
		return nil
	}
	code, err := executable(from(dir, words[0]))
	switch {
	case strings.HasSuffix(line, "\r") && (err != nil || len(words) > 1):
		return &FindError{name, file, ErrCarriageReturn, 127}
	case err != nil:
		return &FindError{name, file, fmt.Errorf("interpreter %q: %w", words[0], err), code}
	}
	return nil
}

// ErrCarriageReturn is why a script cannot be run that an editor on Windows has written: its
// interpreter, or the argument of that, ends with a carriage return.
var ErrCarriageReturn = errors.New(`its #! line ends with a carriage return (\r)`)

// executable returns why file cannot be executed, and the exit code that a shell reports then.
func executable(file string) (code int, err error) {
	info, err := os.Stat(file)
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = e.Err // FindError has the path
	}
	switch {
	case err == syscall.EACCES, err == syscall.ENOTDIR:
		return 126, err
	case err != nil:
		return 127, err
	case info.IsDir():
		return 126, errDirectory
	case !info.Mode().IsRegular():
		return 126, errors.New("not a regular file")
	}
	if err := unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS); err != nil {
		return 126, err
	}
	return 0, nil
}

// from resolves a relative file in dir.
func from(dir, file string) string {
	if dir == "" || path.IsAbs(file) {
		return file
	}
	return path.Join(dir, file)
}

// firstLine is what a script names after "#!"; "" if file is not a script or cannot be read (it may
// be executable without being readable). The kernel reads 256 bytes (BINPRM_BUF_SIZE).
func firstLine(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head) // most files are shorter
	line, script := strings.CutPrefix(string(head[:n]), "#!")
	if !script {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	return line
}
