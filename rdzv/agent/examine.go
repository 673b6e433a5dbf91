package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
)

// Files of the user, such as the program or a directory in PYTHONPATH, may be in a file system that
// does not respond, because its server is down. Then the agent looks at them beside all else that
// it does until it can become a member: the user learns what it waits for, and the other agents do
// not take it for missing.

// examineTime is how long Plan waits for the files. The others may report 2 s later that no other
// agent has connected.
const examineTime = time.Second

// examined is l with what its files tell. If they do not respond in time it is l without that, and
// for a check with the problem.
func (l *Local) examined() *Local {
	done, known := make(chan *Local, 1), make(chan struct{})
	other := *l
	go func() { // until the file system responds, or the process ends
		other.inspect()
		other.findProblems()
		other.rank0Problems = withProblem(nil, other.readExports())
		done <- &other
		close(known)
	}()
	limit := examineTime
	if l.Config.Check != nil {
		limit = 2 * checkTime // it tells by itself of what it has looked for, see unresponsive
	}
	select {
	case all := <-done:
		return all
	case <-time.After(limit):
	}
	l.awaited = l.unanswered()
	if l.Config.Check != nil {
		l.noDir = &unresponsiveError{l.awaited}
		l.findProblems()
		return l
	}
	l.waited, l.rest, l.known = limit, done, known
	return l
}

// reportAwaited reports which files do not respond, until stop, which waits for it.
func (l *Local) reportAwaited(events *reporter) (stop func()) {
	if l.rest == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-time.After(host.SlowAfter - l.waited):
			events.diagnose(Warning, errors.New("waiting: "+l.awaited))
		case <-l.known:
		case <-ctx.Done():
		}
	})
	return func() { cancel(); wg.Wait() }
}

// nameTime is how long to look for the file that does not respond.
const nameTime = 200 * time.Millisecond

// unanswered says in one line which files have not responded.
func (l *Local) unanswered() string {
	ctx, cancel := context.WithTimeout(context.Background(), nameTime)
	defer cancel()
	if path := host.Unresponsive(ctx, l.neededPaths()); path != "" {
		return hungFileSystem(path)
	}
	if file := l.Config.ExportFile; file != "" {
		if info, err := os.Stat(file); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
			return fmt.Sprintf("no program writes to the FIFO %q (Config.ExportFile)", file)
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
func (l *Local) neededPaths() []string {
	c := l.Config
	paths := []string{".", host.Home(l.env)}
	for _, path := range append([]string{c.Dir, c.ExportFile, c.LogDir}, c.Program...) {
		if !filepath.IsAbs(path) && c.Dir != "" && path != c.Dir {
			paths = append(paths, filepath.Join(c.Dir, path))
		}
		if path != "" {
			paths = append(paths, path)
		}
	}
	for _, list := range []string{"PATH", "PYTHONPATH", "PYTHONHOME"} {
		paths = append(paths, filepath.SplitList(l.env[list])...)
	}
	for i, path := range paths {
		if path == "" || strings.HasPrefix(path, "-") { // a flag of the program
			paths[i] = "."
		}
	}
	return paths
}

// prepare waits for the files, and returns what this agent then publishes about itself.
func (m *membership) prepare(ctx context.Context) (rdzv.Member, error) {
	if m.conn.hosting() {
		m.conn.hosted.serve() // this agent has its place, and the others must learn that it waits
	}
	select {
	case m.local = <-m.local.rest:
	case <-ctx.Done():
		return rdzv.Member{}, fmt.Errorf("%w: %w", errors.New(m.local.awaited), context.Cause(ctx))
	}
	id := m.self.ID
	m.self = m.describe()
	m.self.ID = id
	m.local.notePreview(m.events)
	return m.self, nil
}
