package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	Temp string // temporary directory, for a token of this host only if Home cannot hold a file
	UID  int    // of this process; files of other users are refused
}

// Format does not print Text, which is secret.
func (s TokenSource) Format(w fmt.State, _ rune) {
	fmt.Fprintf(w, "token source {file %q, home %q}", s.File, s.Home)
}

// LoadToken returns the user's token, and creates one if there is none yet. Errors contain the name
// of the file or variable, never the token.
func LoadToken(s TokenSource) ([]byte, error) {
	switch {
	case s.File != "":
		return s.readNamedFile()
	case s.Text != "":
		token, err := ParseToken(s.Text)
		if err != nil {
			return nil, fmt.Errorf("cannot use RDZV_TOKEN: %w", err)
		}
		return token, nil
	}
	if s.Home != "" && s.Home != "/" {
		token, err := s.readOrCreate(filepath.Join(s.Home, ".config", "rdzv"))
		if _, unusable := errors.AsType[badDirError](err); !unusable {
			return token, err
		}
	}
	return s.readOrCreate(filepath.Join(s.Temp, "rdzv-"+strconv.Itoa(s.UID)))
}

// An badDirError reports a directory in which no token file can be created, as opposed to a
// token file that cannot be used.
type badDirError struct{ err error }

func (e badDirError) Error() string { return e.err.Error() }
func (e badDirError) Unwrap() error { return e.err }

// readNamedFile reads the token file that the user has specified.
func (s TokenSource) readNamedFile() ([]byte, error) {
	f, err := os.OpenFile(s.File, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read token file %q: %w", s.File, cause(err))
	}
	defer f.Close()
	return s.read(f, s.File, 0)
}

// readOrCreate reads the token in dir, or creates it. If several processes create it at the same
// time, also on several hosts that share the directory, the first one wins: the file is written
// under a temporary name and linked to its final one, which is atomic on NFS as well.
func (s TokenSource) readOrCreate(dir string) ([]byte, error) {
	if err := s.createDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "token")
	token, err := s.readUserFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := createToken(dir, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, badDirError{fmt.Errorf("cannot create token file %q: %w", path, cause(err))}
	}
	return s.readUserFile(path)
}

// readUserFile reads a token file that must belong to this user and be readable by nobody else.
func (s TokenSource) readUserFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("cannot use token file %q: it is a symbolic link", path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read token file %q: %w", path, cause(err))
	}
	defer f.Close()
	return s.read(f, path)
}

// createDir creates dir with mode 0700 if it does not exist, and its parent if that is .config. It
// refuses an existing directory that another user owns or can write to.
func (s TokenSource) createDir(dir string) error {
	parent := filepath.Dir(dir)
	if filepath.Base(parent) == ".config" {
		if err := os.Mkdir(parent, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return badDirError{fmt.Errorf("cannot create directory %q: %w", parent, cause(err))}
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return badDirError{fmt.Errorf("cannot create directory %q: %w", dir, cause(err))}
	}
	return checkPrivate(dir, s.UID)
}

// checkPrivate refuses path if it is not a directory, or if a user other than uid can create or
// replace files in it.
func checkPrivate(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return badDirError{fmt.Errorf("cannot use directory %q: %w", dir, cause(err))}
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	switch {
	case !info.IsDir():
		return fmt.Errorf("cannot use %q: not a directory", dir)
	case owner != uid:
		return fmt.Errorf("cannot use directory %q: it belongs to user %d, not to user %d",
			dir, owner, uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf(
			"cannot use directory %q: others can write to it (mode %04o): chmod 700 %s",
			dir, info.Mode().Perm(), dir)
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

// read reads a token from an open file. It checks the owner and mode of the open file, so that the
// file cannot be replaced between check and use. The owner must be this user or one of others.
func (s TokenSource) read(f *os.File, path string, others ...int) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read token file %q: %w", path, cause(err))
	}
	owner, mode := int(info.Sys().(*syscall.Stat_t).Uid), info.Mode().Perm()
	private := privateMode(owner, s.UID)
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("cannot use token file %q: not a regular file", path)
	case owner != s.UID && !slices.Contains(others, owner):
		return nil, fmt.Errorf("cannot use token file %q: it belongs to user %d, not to user %d",
			path, owner, s.UID)
	case mode&^(private|0o100) != 0:
		return nil, fmt.Errorf(
			"cannot use token file %q: others can read it (mode %04o): chmod %o %s",
			path, mode, private, path)
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

// createToken writes a new token to a temporary file and links it to path. It fails with
// fs.ErrExist if path exists.
func createToken(dir, path string) error {
	f, err := os.CreateTemp(dir, ".token-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, NewToken()+"\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

// cause returns the system's error without the path, which the message contains already.
func cause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}
