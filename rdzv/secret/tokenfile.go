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

// TokenSource says where a user's token may come from, in this order.
type TokenSource struct {
	File string // --token-file: a file that must be there; it may be root's, for this process's group, or behind a symbolic link, as Kubernetes mounts secrets
	Text string // RDZV_TOKEN
	Home string // $HOME: its .config/rdzv/token is made on first need; "" is none
	Temp string // the temporary directory, where a token for this host alone is made when there is no usable home
	UID  int    // of this process; who else owns a token file is refused
}

// Format hides the token in Text.
func (s TokenSource) Format(w fmt.State, _ rune) {
	fmt.Fprintf(w, "token source {file %q, home %q}", s.File, s.Home)
}

// LoadToken gives the user's token, and makes it when there is none yet. Errors name the file or
// the variable, never the token.
func LoadToken(s TokenSource) ([]byte, error) {
	switch {
	case s.File != "":
		return s.named()
	case s.Text != "":
		token, err := ParseToken(s.Text)
		if err != nil {
			return nil, fmt.Errorf("cannot use RDZV_TOKEN: %w", err)
		}
		return token, nil
	}
	if s.Home != "" && s.Home != "/" {
		token, err := s.cookie(filepath.Join(s.Home, ".config", "rdzv"))
		if _, unusable := errors.AsType[noDirError](err); !unusable {
			return token, err
		}
	}
	return s.cookie(filepath.Join(s.Temp, "rdzv-"+strconv.Itoa(s.UID)))
}

// A noDirError is about a directory that cannot hold a token, not about a token that cannot be used.
type noDirError struct{ err error }

func (e noDirError) Error() string { return e.err.Error() }
func (e noDirError) Unwrap() error { return e.err }

func (s TokenSource) named() ([]byte, error) {
	f, err := os.OpenFile(s.File, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read token file %q: %w", s.File, cause(err))
	}
	defer f.Close()
	return s.read(f, s.File, 0)
}

// cookie reads the token of dir, or makes it. Whoever comes first makes it for all, on a shared
// home too: the file is written aside and linked, which is atomic on NFS as well.
func (s TokenSource) cookie(dir string) ([]byte, error) {
	if err := s.private(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "token")
	token, err := s.own(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := makeToken(dir, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, noDirError{fmt.Errorf("cannot make token file %q: %w", path, cause(err))}
	}
	return s.own(path)
}

// own reads a token file that only this user can have written and read.
func (s TokenSource) own(path string) ([]byte, error) {
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

// private makes dir with mode 0700 unless it is there, and refuses one that others can write or
// own.
func (s TokenSource) private(dir string) error {
	parent := filepath.Dir(dir)
	if filepath.Base(parent) == ".config" {
		if err := os.Mkdir(parent, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return noDirError{fmt.Errorf("cannot make directory %q: %w", parent, cause(err))}
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return noDirError{fmt.Errorf("cannot make directory %q: %w", dir, cause(err))}
	}
	return checkPrivate(dir, s.UID)
}

// checkPrivate refuses a directory that is not one, or in which somebody else than uid could put or
// swap files.
func checkPrivate(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return noDirError{fmt.Errorf("cannot use directory %q: %w", dir, cause(err))}
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	switch {
	case !info.IsDir():
		return fmt.Errorf("cannot use %q: not a directory", dir)
	case owner != uid:
		return fmt.Errorf("cannot use directory %q: it belongs to user %d, not to user %d", dir, owner, uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("cannot use directory %q: others can write to it (mode %04o): chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// privateMode is all that a token file may allow. A file of root's that a process of another user
// can read is for a group, as the secrets of a pod with an fsGroup are (mode 0440).
func privateMode(owner, uid int) fs.FileMode {
	if owner == uid {
		return 0o600
	}
	return 0o640
}

// read checks the open file itself, so that nobody can swap it in between. Its owner is this user,
// or one of the others given.
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
		return nil, fmt.Errorf("cannot use token file %q: it belongs to user %d, not to user %d", path, owner, s.UID)
	case mode&^(private|0o100) != 0:
		return nil, fmt.Errorf("cannot use token file %q: others can read it (mode %04o): chmod %o %s", path, mode, private, path)
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

// makeToken writes a new token aside and gives it its name, unless another was quicker.
func makeToken(dir, path string) error {
	f, err := os.CreateTemp(dir, ".token-*") // 0600
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

// cause is an error of the system without the path that the message names already.
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
