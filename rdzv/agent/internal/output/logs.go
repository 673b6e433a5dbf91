package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Logs are the files of one attempt of a run: DIR/RUN/attempt-0/rank-00003.log. All agents of a job
// name the same directory, which nodes may share.
type Logs struct {
	Dir     string
	Job     string
	Began   time.Time // which tells runs of the same name apart
	Attempt int
}

// run is the name of the run in Dir. It is a single element of a path.
func (l Logs) run() string {
	name := strings.Map(func(r rune) rune {
		if r <= ' ' || r == '/' || r == 0x7f {
			return '_'
		}
		return r
	}, l.Job)
	return name + "-" + l.Began.UTC().Format("20060102T150405.000")
}

// File is the file of a rank.
func (l Logs) File(rank int) string {
	return filepath.Join(l.Dir, l.run(), fmt.Sprintf("attempt-%d", l.Attempt),
		fmt.Sprintf("rank-%05d.log", rank))
}

// Open opens the files of ranks, and makes their directory. If it returns an error it has opened
// none.
func (l Logs) Open(ranks []int) (files []*os.File, err error) {
	if err := os.MkdirAll(filepath.Dir(l.File(0)), 0o777); err != nil {
		return nil, err
	}
	for _, rank := range ranks {
		const mode = os.O_CREATE | os.O_WRONLY | os.O_APPEND
		f, err := os.OpenFile(l.File(rank), mode, 0o666)
		if err != nil {
			Close(files)
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Close closes files.
func Close(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// Link makes DIR/latest a link to the directory of the run. What is no link is not replaced.
// Several agents may do the same.
func (l Logs) Link() error {
	name := filepath.Join(l.Dir, "latest")
	if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return fmt.Errorf("cannot link %q to %q: it exists and is no link", name, l.run())
	}
	host, _ := os.Hostname()
	temporary := fmt.Sprintf("%s.%s.%d", name, host, os.Getpid())
	err := os.Symlink(l.run(), temporary)
	if errors.Is(err, os.ErrExist) { // left by an agent that was killed
		os.Remove(temporary)
		err = os.Symlink(l.run(), temporary)
	}
	if err == nil {
		err = os.Rename(temporary, name)
	}
	return err
}
