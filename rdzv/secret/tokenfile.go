package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// TokenSource contains the places where a user's token may be. The first field that is set and
// usable determines the token.
type TokenSource struct {
	// File is --token-file. The file must exist. It may belong to root, be readable by this
	// process's group, and be a symbolic link, as with secrets that Kubernetes mounts.
	File string
	Text string // RDZV_TOKEN
	Home string // $HOME, whose .config/rdzv/token is created if missing; "" if there is none
	// Exists says that a token is not created, because other hosts would not have it: if there is
	// none, the error is a *MissingError.
	Exists bool
	UID    int // of this process; files of other users are refused

	// Temp is a temporary directory, for a token of this host only if Home cannot hold a file; ""
	// if the agents of other hosts need the token too.
	Temp string
	// Elsewhere, if not nil, is told the path of the token in Temp, and why it is not in Home.
	Elsewhere func(path string, cause error)
	// Created, if not nil, is told the path of a token that this process has created.
	Created func(path string)
}

// Format does not print Text, which is secret.
func (s TokenSource) Format(w fmt.State, _ rune) {
	fmt.Fprintf(w, "token source {file %q, home %q}", s.File, s.Home)
}

// A NoPlaceError says that no token can be kept in the home directory, and one of this host only
// does not do.
type NoPlaceError struct{ error }

func (e *NoPlaceError) Unwrap() error { return e.error }

// A MissingError says that there is no token, and that none may be created.
type MissingError struct{ Path string } // where it could be; "" if there is no home directory

func (e *MissingError) Error() string {
	if e.Path == "" {
		return "cannot find the token: RDZV_TOKEN is not set"
	}
	return fmt.Sprintf("cannot find the token: RDZV_TOKEN is not set, and there is no %q", e.Path)
}

var errNoHome = errors.New("cannot find the token: there is no home directory")

// LoadToken returns the user's token, and creates one if there is none yet. Errors contain the name
// of the file or variable, never the token.
func LoadToken(s TokenSource) ([]byte, error) {
	switch {
	case s.File != "":
		return s.read(s.File, true)
	case s.Text != "":
		token, err := ParseToken(s.Text)
		if err != nil {
			return nil, fmt.Errorf("cannot use RDZV_TOKEN: %w", err)
		}
		return token, nil
	}
	if s.Exists {
		return s.readExisting()
	}
	token, err := []byte(nil), error(badDirError{errNoHome})
	if dir := s.homeDir(); dir != "" {
		token, err = s.readOrCreate(dir)
	}
	unusable, is := errors.AsType[badDirError](err)
	switch {
	case !is:
		return token, err
	case s.Temp == "":
		return nil, &NoPlaceError{unusable.error}
	}
	token, err = s.readOrCreate(s.tempDir())
	if err == nil && s.Elsewhere != nil {
		s.Elsewhere(filepath.Join(s.tempDir(), "token"), unusable.error)
	}
	return token, err
}

// Place returns where LoadToken has read the token: the path of a file, or "RDZV_TOKEN".
func (s TokenSource) Place() string {
	switch dir := s.homeDir(); {
	case s.File != "":
		return s.File
	case s.Text != "":
		return "RDZV_TOKEN"
	case dir != "":
		path := filepath.Join(dir, "token")
		if _, err := os.Lstat(path); err == nil || s.Temp == "" {
			return path
		}
	}
	return filepath.Join(s.tempDir(), "token")
}

// homeDir returns the directory of the user's token, "" without a home.
func (s TokenSource) homeDir() string {
	if s.Home == "" || s.Home == "/" {
		return ""
	}
	return filepath.Join(s.Home, ".config", "rdzv")
}

// tempDir returns the directory of a token of this host only.
func (s TokenSource) tempDir() string { return filepath.Join(s.Temp, "rdzv-"+strconv.Itoa(s.UID)) }

// A badDirError reports a directory in which no token file can be created, as opposed to a
// token file that cannot be used.
type badDirError struct{ error }

func (e badDirError) Unwrap() error { return e.error }

// readOrCreate reads the token in dir, or creates it. If several processes create it at the same
// time, also on several hosts that share the directory, the first one wins.
func (s TokenSource) readOrCreate(dir string) ([]byte, error) {
	if err := s.createDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "token")
	token, err := s.read(path, false)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	err = create(dir, path)
	switch {
	case err == nil && s.Created != nil:
		s.Created(path)
	case err != nil && !errors.Is(err, fs.ErrExist):
		return nil, badDirError{fmt.Errorf("cannot create token file %q: %w", path, cause(err))}
	}
	return s.read(path, false)
}

// readExisting reads the token in the home directory.
func (s TokenSource) readExisting() ([]byte, error) {
	dir := s.homeDir()
	if dir == "" {
		return nil, &MissingError{}
	}
	path := filepath.Join(dir, "token")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{path}
	}
	if err := s.checkDir(dir); err != nil {
		return nil, err
	}
	return s.read(path, false)
}

// createDir creates dir with mode 0700 if it does not exist, and its parent if that is .config.
func (s TokenSource) createDir(dir string) error {
	missing := []string{dir}
	if parent := filepath.Dir(dir); filepath.Base(parent) == ".config" {
		missing = []string{parent, dir}
	}
	for _, d := range missing {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return badDirError{fmt.Errorf("cannot create directory %q: %w", d, cause(err))}
		}
	}
	return s.checkDir(dir)
}

// checkDir refuses a directory in which a user other than this one can create or replace files.
func (s TokenSource) checkDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return badDirError{fmt.Errorf("cannot use directory %q: %w", dir, cause(err))}
	}
	owner, mode := int(info.Sys().(*syscall.Stat_t).Uid), info.Mode().Perm()
	switch {
	case !info.IsDir():
		return fmt.Errorf("cannot use %q: not a directory", dir)
	case owner != s.UID:
		return fmt.Errorf("cannot use directory %q: it belongs to user %d, not to user %d",
			dir, owner, s.UID)
	case mode&0o022 != 0:
		return fmt.Errorf(
			"cannot use directory %q: others can write to it (mode %04o): chmod 700 %s", dir, mode, dir)
	}
	return nil
}

// read reads a token file. One that the user has named may be a symbolic link and belong to root.
// Any other one must belong to this user. The owner and mode are those of the open file, so that it
// cannot be replaced between check and use.
func (s TokenSource) read(path string, named bool) ([]byte, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if !named {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	if !named && errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("cannot use token file %q: it is a symbolic link", path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read token file %q: %w", path, cause(err))
	}
	defer f.Close()
	if err := s.checkFile(f, path, named); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read token file %q: %w", path, cause(err))
	}
	token, err := ParseToken(string(text))
	if err != nil {
		return nil, fmt.Errorf("cannot use token file %q: %w", path, err)
	}
	return token, nil
}

func (s TokenSource) checkFile(f *os.File, path string, named bool) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot read token file %q: %w", path, cause(err))
	}
	owner, mode := int(info.Sys().(*syscall.Stat_t).Uid), info.Mode().Perm()
	private := privateMode(owner, s.UID)
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("cannot use token file %q: not a regular file", path)
	case owner != s.UID && !(named && owner == 0):
		return fmt.Errorf("cannot use token file %q: it belongs to user %d, not to user %d",
			path, owner, s.UID)
	case mode&^(private|0o100) != 0:
		return fmt.Errorf("cannot use token file %q: others can read it (mode %04o): chmod %o %s",
			path, mode, private, path)
	}
	return nil
}

// privateMode returns the permissions that a token file may have at most. A file of root that a
// process of another user can read belongs to that process's group, as in a pod with an fsGroup
// (mode 0440).
func privateMode(owner, uid int) fs.FileMode {
	if owner == uid {
		return 0o600
	}
	return 0o640
}

// cause returns the system's error without the path, which the message contains already.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}
