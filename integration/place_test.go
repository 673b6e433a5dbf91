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

// A place is where the processes of one test live: their directories, their environment, and the mark by which they
// are found again whatever became of their parents.
type place struct {
	t         *testing.T
	root      string
	env       []string
	mark      string
	processes []*process
}

const markName = "INTEGRATION_MARK"

var places atomic.Int64

// newPlace makes a place. When the test ends it must be clean: see checkClean.
func newPlace(t *testing.T) *place {
	t.Helper()
	root, err := os.MkdirTemp("", "it") // not t.TempDir: unix sockets allow about 100 bytes of path
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, root: root, mark: fmt.Sprintf("%d.%d", os.Getpid(), places.Add(1))}
	p.env = []string{
		markName + "=" + p.mark, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "PYTHONUNBUFFERED=1",
		"HOME=" + p.dir("home"), "TMPDIR=" + p.dir("tmp"), // without XDG_RUNTIME_DIR, as on most clusters
	}
	if os.Geteuid() == 0 { // Open MPI asks root twice whether it is meant
		p.env = append(p.env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	t.Cleanup(p.leave)
	return p
}

// dir makes a directory of that name in the place, for its owner alone, and returns its path.
func (p *place) dir(name string) string {
	p.t.Helper()
	path := filepath.Join(p.root, name)
	if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
		p.t.Fatal(err)
	}
	return path
}

// leave checks the place, shows what its processes said if the test has failed, and removes everything.
func (p *place) leave() {
	p.checkClean()
	for _, pid := range p.alive() {
		kill(pid)
	}
	for _, process := range p.processes {
		<-process.done
		if p.t.Failed() {
			process.tell()
		}
	}
	if err := os.RemoveAll(p.root); err != nil {
		p.t.Error(err)
	}
}

// checkClean fails the test if a process lives on, or a file lies in the temporary or runtime directory, or in the
// home beside the token.
func (p *place) checkClean() {
	p.checkNoProcesses()
	for _, file := range p.files() {
		p.t.Errorf("left behind: %s", file)
	}
}

func (p *place) checkNoProcesses() {
	left := func() []int { return append(p.alive(), orphanedKeepers()...) }
	if !eventually(20*time.Second, func() bool { return len(left()) == 0 }) {
		for _, pid := range left() {
			p.t.Errorf("process %d is still alive: %q", pid, commandLine(pid))
		}
	}
}

// removeFiles removes the files that lie there, for a story in which nobody was left to do so.
func (p *place) removeFiles() {
	p.checkNoProcesses()
	for _, file := range p.files() {
		if err := os.RemoveAll(filepath.Join(p.root, file)); err != nil {
			p.t.Error(err)
		}
	}
}

// files lists what lies in the directories that rdzv may use, without the token and the runtime directory itself, which
// are meant to stay. What Open MPI leaves when it is killed is not rdzv's.
func (p *place) files() (left []string) {
	for _, name := range []string{"home", "tmp"} {
		err := filepath.WalkDir(filepath.Join(p.root, name), func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			relative := strings.TrimPrefix(path, p.root+"/")
			switch {
			case isOpenMPIDirectory(entry.Name()):
				return filepath.SkipDir
			case runtimeDir.MatchString(relative) && entry.IsDir():
			case relative == name, relative == "home/.config", relative == "home/.config/rdzv", relative == "home/.config/rdzv/token":
			default:
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

// runtimeDir is where a user's agents keep what must be on disk while they run. It stays, empty: an agent that removed it
// would take it from another job of the same user that is about to create something in it.
var runtimeDir = regexp.MustCompile(`^tmp/rdzv-[0-9]+$`)

// isOpenMPIDirectory tells the session directories of Open MPI 4 (ompi.) and 5 by their names.
func isOpenMPIDirectory(name string) bool {
	return slices.ContainsFunc([]string{"ompi.", "prterun.", "prted."}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// alive returns the processes of this place that have not ended: they carry its mark in their environment.
func (p *place) alive() (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range found {
		environ, err := os.ReadFile(path)
		if err != nil || !strings.Contains("\x00"+string(environ), "\x00"+markName+"="+p.mark+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// orphanedKeepers returns the processes that have outlived the Hydra whose key they keep. They carry no mark: of the environment
// of those that start them they have nothing.
func orphanedKeepers() (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range found {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if line := commandLine(pid); err != nil || len(line) != 2 || line[0] != "rdzv-keeper" {
			continue
		} else if _, err := os.Stat("/proc/" + line[1]); err != nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// agents returns the running rdzv exec of this place: those with a child that is rdzv too, its watchdog.
func (p *place) agents() (pids []int) {
	for _, pid := range p.alive() {
		if line := commandLine(pid); len(line) > 1 && line[0] == *rdzvBin && line[1] == "exec" {
			pids = append(pids, pid)
		}
	}
	return pids
}

func commandLine(pid int) []string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// eventually asks again and again until the answer is yes; false if it never was within the time.
func eventually(limit time.Duration, yes func() bool) bool {
	deadline := time.After(limit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if yes() {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline:
			return yes()
		}
	}
}
