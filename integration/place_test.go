package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A place has the working directories and the environment of the processes of one test. The
// environment contains a mark by which the processes are found even if their parents have ended.
type place struct {
	t         *testing.T
	root      string
	env       []string
	mark      string
	processes []*process
}

const markName = "INTEGRATION_MARK"

var places atomic.Int64

// newPlace makes a place. At the end of the test it must be clean: see checkClean.
func newPlace(t *testing.T) *place {
	t.Helper()
	root, err := os.MkdirTemp("", "it") // not t.TempDir: a Unix socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, root: root, mark: fmt.Sprintf("%d.%d", os.Getpid(), places.Add(1))}
	p.env = []string{
		markName + "=" + p.mark, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "PYTHONUNBUFFERED=1",
		"HOME=" + p.dir("home"),
		"TMPDIR=" + p.dir("tmp"), // XDG_RUNTIME_DIR is not set, as on most clusters
	}
	if os.Geteuid() == 0 { // otherwise Open MPI does not run as root
		p.env = append(p.env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	t.Cleanup(p.remove)
	return p
}

// dir makes a directory of that name in the place, with access for its owner only, unless it
// exists. It returns the path.
func (p *place) dir(name string) string {
	p.t.Helper()
	path := filepath.Join(p.root, name)
	if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
		p.t.Fatal(err)
	}
	return path
}

// remove checks the place and removes it. If the test has failed, it logs the output of the
// processes.
func (p *place) remove() {
	p.checkClean()
	for _, pid := range p.marked() {
		kill(pid)
	}
	for _, process := range p.processes {
		<-process.done
		if p.t.Failed() {
			process.logOutput()
		}
	}
	if err := os.RemoveAll(p.root); err != nil {
		p.t.Error(err)
	}
}

// checkClean fails the test if a process is left, or a file in the home or temporary directory,
// except for the token.
func (p *place) checkClean() {
	p.checkNoProcesses()
	for _, file := range p.files() {
		p.t.Errorf("the file %s is left", file)
	}
}

func (p *place) checkNoProcesses() {
	p.checkNone(func() []int { return append(p.marked(), orphanedKeepers()...) })
}

// checkNone waits until there is none of the processes.
func (p *place) checkNone(list func() []int) {
	if !eventually(20*time.Second, func() bool { return len(list()) == 0 }) {
		for _, pid := range list() {
			p.t.Errorf("process %d is still alive: %q", pid, commandLine(pid))
		}
	}
}

// removeFiles removes the files that are left. It is for tests that kill all processes that could
// have removed them.
func (p *place) removeFiles() {
	p.checkNoProcesses()
	for _, file := range p.files() {
		if err := os.RemoveAll(filepath.Join(p.root, file)); err != nil {
			p.t.Error(err)
		}
	}
}

// mayRemain matches the files that a job does not remove. An agent that removed the runtime
// directory could take it from another job of the same user that is about to create a file in it.
var mayRemain = regexp.MustCompile(
	`^(home|tmp|home/\.config|home/\.config/rdzv|home/\.config/rdzv/token|tmp/rdzv-[0-9]+)$`)

// files lists the files in the directories that rdzv may use, except those that may remain and
// those of Open MPI and of torch 2, which leave files if they are killed.
func (p *place) files() (left []string) {
	for _, name := range []string{"home", "tmp"} {
		root := filepath.Join(p.root, name)
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if isOpenMPIDirectory(entry.Name()) || entry.IsDir() && isTorchDirectory(path) {
				return filepath.SkipDir
			}
			relative := strings.TrimPrefix(path, p.root+"/")
			isToken := strings.HasSuffix(relative, "/token")
			if !mayRemain.MatchString(relative) || entry.IsDir() == isToken {
				left = append(left, relative)
			}
			return nil
		})
		if err != nil {
			p.t.Error(err)
		}
	}
	return left
}

// isOpenMPIDirectory tells the session directories of Open MPI 4 (ompi.) and 5 by their names.
func isOpenMPIDirectory(name string) bool {
	return slices.ContainsFunc([]string{"ompi.", "prterun.", "prted."}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// isTorchDirectory tells the directory into which torch.distributed of torch 2 writes a module.
func isTorchDirectory(path string) bool {
	_, err := os.Stat(filepath.Join(path, "_remote_module_non_scriptable.py"))
	return err == nil
}

// marked returns the live processes of this place: they have its mark in their environment.
func (p *place) marked() (pids []int) {
	mark := "\x00" + markName + "=" + p.mark + "\x00"
	for _, pid := range allProcesses() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && strings.Contains("\x00"+string(environ), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// tree returns the live processes of this place, including those without its mark in their
// environment, such as the runners: their working directory is in the place, or the mark is one of
// their arguments.
func (p *place) tree() []int {
	marked := p.marked()
	return slices.DeleteFunc(allProcesses(), func(pid int) bool {
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		inPlace := err == nil && (dir == p.root || strings.HasPrefix(dir, p.root+"/"))
		return !inPlace && !slices.Contains(marked, pid) &&
			!slices.Contains(commandLine(pid), p.mark)
	})
}

// rdzvProcesses returns the agents and runners of this place.
func (p *place) rdzvProcesses() []int {
	return slices.DeleteFunc(p.tree(), func(pid int) bool { return !isRdzv(pid) })
}

// agents returns the agents of this place. A child of an agent may have the same command line: it
// was forked and has not executed its program yet.
func (p *place) agents() []int {
	return slices.DeleteFunc(p.rdzvProcesses(), func(pid int) bool {
		return commandLine(pid)[0] != *rdzvBin || isRdzv(parentOf(pid))
	})
}

// orphanedKeepers returns the processes that keep the key of a Hydra that has ended, and may be a
// zombie. They do not have the mark, because they do not inherit the environment.
func orphanedKeepers() []int {
	return slices.DeleteFunc(allProcesses(), func(pid int) bool {
		line := commandLine(pid)
		if len(line) != 3 || line[0] != "rdzv-keeper" {
			return true
		}
		hydra, err := strconv.Atoi(strings.TrimPrefix(line[1], "--rdzv-keeper-of="))
		ended := err != nil || slices.Contains([]string{"X", "Z"}, stateOf(hydra))
		return !ended
	})
}

// eventually calls the condition again and again until it is true. It returns false if that takes
// longer than the limit. In between it waits for as long as the condition has taken: some start
// processes, and many read all of /proc.
func eventually(limit time.Duration, condition func() bool) bool {
	deadline := time.After(limit)
	for {
		began := time.Now()
		if condition() {
			return true
		}
		select {
		case <-time.After(min(max(time.Since(began), 10*time.Millisecond), 200*time.Millisecond)):
		case <-deadline:
			return condition()
		}
	}
}
