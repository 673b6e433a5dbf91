package setup

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rdzv/rdzv/agent/internal/host"
)

// unresponsiveError says that a file system does not respond.
type unresponsiveError struct{ text string }

func (e *unresponsiveError) Error() string { return "cannot start: " + e.text }

// unresponsive is an *[unresponsiveError] if nodes are checked and the program or its directory may
// be in a file system that does not respond. exec would wait for it.
func (w Wanted) unresponsive() error {
	if !w.Checks {
		return nil
	}
	paths := []string{"."}
	for _, path := range append([]string{w.Dir}, w.Argv...) {
		if strings.Contains(path, "/") {
			paths = append(paths, path)
		}
	}
	paths = append(paths, filepath.SplitList(w.Env["PATH"])...)
	ctx, cancel := context.WithTimeout(context.Background(), CheckTime)
	defer cancel()
	path := host.Unresponsive(ctx, paths)
	if path == "" {
		return nil
	}
	return &unresponsiveError{hungFileSystem(path)}
}

// nameTime is how long to look for the file that does not respond.
const nameTime = 200 * time.Millisecond

// Unanswered says in one line which files have not responded.
func (w Wanted) Unanswered() string {
	ctx, cancel := context.WithTimeout(context.Background(), nameTime)
	defer cancel()
	if path := host.Unresponsive(ctx, w.neededPaths()); path != "" {
		return hungFileSystem(path)
	}
	if w.ExportFile != "" {
		if info, err := os.Stat(w.ExportFile); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
			return fmt.Sprintf("no program writes to the FIFO %q (--export @FILE)", w.ExportFile)
		}
	}
	return "the file system of the program, or of something that it needs, does not respond"
}

// hungFileSystem says that a path does not respond; "." is the working directory.
func hungFileSystem(path string) string {
	if path == "." {
		path, _ = os.Readlink("/proc/self/cwd")
	}
	return fmt.Sprintf("the file system of %q does not respond", path)
}

// neededPaths are the paths that this agent looks at for the user.
func (w Wanted) neededPaths() []string {
	paths := []string{".", host.Home(w.Env)}
	for _, path := range append([]string{w.Dir, w.ExportFile, w.LogDir}, w.Argv...) {
		if !filepath.IsAbs(path) && w.Dir != "" && path != w.Dir {
			paths = append(paths, filepath.Join(w.Dir, path))
		}
		if path != "" {
			paths = append(paths, path)
		}
	}
	for _, list := range []string{"PATH", "PYTHONPATH", "PYTHONHOME"} {
		paths = append(paths, filepath.SplitList(w.Env[list])...)
	}
	for i, path := range paths {
		if path == "" || strings.HasPrefix(path, "-") { // a flag of the program
			paths[i] = "."
		}
	}
	return paths
}
