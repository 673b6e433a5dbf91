package options

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rdzv/cmd/rdzv/internal/files"
	"rdzv/internal/hint"
	"rdzv/rdzv"
)

// ownFile is a flag that names a file which rdzv itself writes.
type ownFile struct {
	flag     string
	path     *string
	what     string // for messages
	replaced bool   // the file, rather than appended to
}

// CheckFiles looks at the files that rdzv writes before the agents meet. Why one cannot be written
// is a problem of the member: the job does not start, and no agent waits for this one. Such a file
// is forgotten, because another message about it would say nothing new. The error is that of a file
// that another flag or a stream names too: one would overwrite the other.
func (o *Options) CheckFiles(p Process) (problems []rdzv.Problem, err error) {
	others, limit := o.files(), files.Limit{}
	for _, own := range []ownFile{
		{"--report", &o.Output.ReportFile, "the report", true},
		{"--events", &o.Output.EventFile, "events to", false},
	} {
		path := *own.path
		if path == "" {
			continue
		}
		err := limit.Do(files.Timeout, func() error { return o.checkFile(p, own, path, others) })
		if errors.Is(err, files.ErrSlow) { // it may respond when it is written
			p.Console.Warn("cannot look at the file of %s %q: the file system does not respond",
				own.flag, path)
			continue
		}
		if conflict, is := errors.AsType[sharedFile](err); is {
			return nil, conflict.error
		}
		if err != nil {
			text := fmt.Sprintf("cannot write %s %q: %v", own.what, path, err)
			problems = append(problems, rdzv.Problem{Kind: rdzv.AgentProblem, Text: text})
			*own.path = ""
		}
	}
	return problems, nil
}

// sharedFile says that two flags, or a flag and a stream, name the same file.
type sharedFile struct{ error }

// checkFile is a sharedFile, or why the file at path cannot be written.
func (o *Options) checkFile(p Process, out ownFile, path string, others [][2]string) error {
	for _, other := range others {
		if other[0] != out.flag && files.Same(path, other[1]) {
			return sharedFile{fmt.Errorf("cannot run %s: %s %q and %s %q name the same file",
				o.given.Name(), out.flag, path, other[0], other[1])}
		}
	}
	for i, stream := range []*os.File{p.Stdout, p.Stderr} {
		if name := []string{"stdout", "stderr"}[i]; files.Opened(path, stream) {
			return sharedFile{hint.With(
				fmt.Errorf("cannot run %s: %s %q is the file of %s", o.given.Name(), out.flag, path, name),
				fmt.Sprintf("name another file, or /dev/%s", name),
			)}
		}
	}
	err := files.Check(path, out.replaced)
	if errors.Is(err, fs.ErrNotExist) && o.inLogDir(path) {
		return nil
	}
	return err
}

// files are the flags that name files, and the paths.
func (o *Options) files() (named [][2]string) {
	for _, g := range o.Groups() {
		for _, r := range g.Rows {
			if path, ok := r.Value.(*string); ok && r.TakesFile() && *path != "" {
				named = append(named, [2]string{"--" + r.Name(), *path})
			}
		}
	}
	if o.Settings.ExportFile != "" {
		named = append(named, [2]string{"--export @FILE", o.Settings.ExportFile})
	}
	if dir := strings.TrimRight(o.Settings.LogDir, "/"); dir != "" {
		named = append(named, [2]string{"--log-dir", dir}, [2]string{"--log-dir", dir + "/latest"})
	}
	return named
}

// inLogDir tells whether path is in a directory that will be there when the workers have started,
// because of --log-dir.
func (o *Options) inLogDir(path string) bool {
	below, err := filepath.Rel(o.Settings.LogDir, path)
	return o.Settings.LogDir != "" && err == nil && filepath.IsLocal(below) &&
		(!strings.Contains(below, "/") || strings.HasPrefix(below, "latest/"))
}
