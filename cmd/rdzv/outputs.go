package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rdzv/cmd/rdzv/internal/outfile"
	"rdzv/rdzv"
)

// output is a flag that names a file which rdzv itself writes.
type output struct {
	flag     string
	path     *string
	what     string // for messages
	replaced bool   // the file, rather than appended to
}

func (o *options) outputs() []output {
	return []output{
		{"--report", &o.reportFile, "the report", true}, {"--events", &o.eventFile, "events to", false},
	}
}

// lookTimeout is how long the look at each output file may delay this agent.
const lookTimeout = 2 * time.Second

// checkOutputs looks at the output files before the agents meet. Why one cannot be written is a
// problem of the member: the job does not start, and no agent waits for this one. Such a file is
// forgotten, because another message about it would say nothing new. The error is that of a file
// that another flag names too: one would overwrite the other.
func (o *options) checkOutputs(a *app) (problems []rdzv.Problem, err error) {
	files := o.files()
	for _, out := range o.outputs() {
		path, found := *out.path, make(chan error, 1)
		if path == "" {
			continue
		}
		go func() { found <- o.checkOutput(a, out, path, files) }()
		select {
		case err = <-found:
		case <-time.After(lookTimeout): // it may respond when it is written
			a.console.Warn("cannot look at the file of %s %q: the file system does not respond", out.flag,
				path)
			continue
		}
		if conflict, is := errors.AsType[sharedFile](err); is {
			return nil, conflict.error
		}
		if err != nil {
			text := fmt.Sprintf("cannot write %s %q: %v", out.what, path, err)
			problems = append(problems, rdzv.Problem{Kind: rdzv.AgentProblem, Text: text})
			*out.path = ""
		}
	}
	return problems, nil
}

// sharedFile says that two flags, or a flag and a stream, name the same file.
type sharedFile struct{ error }

// checkOutput is a sharedFile, or why the file at path cannot be written.
func (o *options) checkOutput(a *app, out output, path string, files [][2]string) error {
	for _, other := range files {
		if other[0] != out.flag && outfile.Same(path, other[1]) {
			return sharedFile{fmt.Errorf("cannot run %s: %s %q and %s %q name the same file",
				o.flags.Name(), out.flag, path, other[0], other[1])}
		}
	}
	for i, stream := range []*os.File{a.stdout, a.stderr} {
		if name := []string{"stdout", "stderr"}[i]; outfile.Opened(path, stream) {
			return sharedFile{hinted{
				fmt.Errorf("cannot run %s: %s %q is the file of %s", o.flags.Name(), out.flag, path, name),
				fmt.Sprintf("name another file, or /dev/%s", name),
			}}
		}
	}
	err := outfile.Check(path, out.replaced)
	if errors.Is(err, fs.ErrNotExist) && o.inLogDir(path) {
		return nil
	}
	return err
}

// files are the flags that name files, and the paths.
func (o *options) files() (files [][2]string) {
	for _, g := range o.execGroups() {
		for _, r := range g.rows {
			if path, ok := r.value.(*string); ok && r.takesFile() && *path != "" {
				files = append(files, [2]string{"--" + r.name(), *path})
			}
		}
	}
	if o.exportFile != "" {
		files = append(files, [2]string{"--export @FILE", o.exportFile})
	}
	if dir := strings.TrimRight(o.logDir, "/"); dir != "" {
		files = append(files, [2]string{"--log-dir", dir}, [2]string{"--log-dir", dir + "/latest"})
	}
	return files
}

// inLogDir tells whether path is in a directory that will be there when the workers have started,
// because of --log-dir.
func (o *options) inLogDir(path string) bool {
	below, err := filepath.Rel(o.logDir, path)
	return o.logDir != "" && err == nil && filepath.IsLocal(below) &&
		(!strings.Contains(below, "/") || strings.HasPrefix(below, "latest/"))
}
