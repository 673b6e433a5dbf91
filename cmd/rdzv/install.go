package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"rdzv/cmd/rdzv/internal/files"
	"rdzv/internal/hint"
)

const installHelp = `Usage: rdzv install DIR

    rdzv install /opt/rdzv

Copy this binary to DIR/rdzv, for an init container that puts it into a volume:
an image that has only rdzv has no cp. rdzv needs no other file. DIR is created
if only its last part is missing. An existing DIR/rdzv is replaced, even while
it runs; running processes are not affected.

Exit status:
    0        copied
    1        it could not be copied
    2        wrong usage
`

// install copies the running binary to a directory.
func (a *app) install(args []string) int {
	switch {
	case len(args) == 0 || args[0] == "":
		return a.usage(errors.New("cannot run install: no directory given"), "install")
	case len(args) > 1:
		err := fmt.Errorf("cannot run install: unexpected argument %q", args[1])
		return a.usage(err, "install")
	}
	if err := installTo(args[0]); err != nil {
		return a.fail(err)
	}
	return codeOK
}

// ownBinary is the file of this process, also if its name is another file's by now.
const ownBinary = "/proc/self/exe"

func installTo(dir string) error {
	target := filepath.Join(dir, "rdzv")
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return hint.With(fmt.Errorf("cannot create directory %q: %w", dir, files.Cause(err)),
			"give a directory that exists, or one in it")
	}
	binary, err := os.Open(ownBinary)
	if err != nil {
		return fmt.Errorf("cannot read this binary, %q: %w", ownBinary, files.Cause(err))
	}
	defer binary.Close()
	if err := replaceBy(target, binary); err != nil {
		return hint.With(fmt.Errorf("cannot copy this binary to %q: %w", target, files.Cause(err)),
			"give a directory to which user "+fmt.Sprint(os.Geteuid())+" can write")
	}
	return nil
}

// replaceBy renames a new program with the content of src to target, whatever the umask is, so that
// no process reads or executes a part of it. What runs from the old file goes on.
func replaceBy(target string, src io.Reader) error {
	f, err := renameio.NewPendingFile(target, renameio.WithTempDir(filepath.Dir(target)),
		renameio.WithStaticPermissions(0o755))
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if _, err := io.Copy(f, src); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
