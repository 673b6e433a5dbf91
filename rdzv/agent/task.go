package agent

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/internal/record"
	"rdzv/wrap"
)

// Task is one of the launcher's tasks of this node, other than the one whose process this agent is.
// The agent runs its workers too. They run the same program in the same directory, but are
// descendants of that task, with its environment, streams, cgroup and limits.
type Task struct {
	PID     int      // of the task's process
	Environ []string // as Config.Environ
	// Stdin, Stdout and Stderr are the task's own streams, for asking what they are: Run gives them
	// to workers with a Stdin, Stdout or Stderr.
	Stdin, Stdout, Stderr *os.File
	// PMI is a descriptor of this process that is the task's PMI_FD; 0 is none.
	PMI int
	// Accessible tells whether the task may read and write a device file; nil is as this process may.
	Accessible func(name string) bool

	// Run runs workers in the task, as wrap.Run does in this process. If the task is lost it returns
	// an error that is wrap.ErrHolder, as all results that it has not delivered.
	Run func(context.Context, wrap.Tree) ([]wrap.Result, error)
	// ReadFile reads a file below /proc, with an absolute path, as the task may, and Remaining is
	// wrap.Remaining there: the descendants of other tasks can be hidden from this process.
	ReadFile  func(name string) ([]byte, error)
	Remaining func() []wrap.Process
	// Signals delivers those that the task's process receives and that end the job or are shared by
	// all agents. Lost is closed when the process has died.
	Signals <-chan wrap.Event
	Lost    <-chan struct{}
}

// config is the configuration of an agent of this task alone.
func (t *Task) config(c Config) Config {
	c.Tasks, c.Problems, c.Line = nil, nil, nil
	c.Environ, c.Stdin, c.Stdout, c.Stderr = t.Environ, t.Stdin, t.Stdout, t.Stderr
	c.Root = taskRoot{files: c.Root, self: "proc/" + strconv.Itoa(t.PID), task: t}
	return c
}

// taskRoot is the file system as a task sees it: /proc/self is the task's.
type taskRoot struct {
	files fs.FS
	self  string
	task  *Task
}

func (r taskRoot) name(name string) string {
	if rest, is := strings.CutPrefix(name, "proc/self"); is && (rest == "" || rest[0] == '/') {
		return r.self + rest
	}
	return name
}

// Open opens a file of the task's /proc/self, or any other.
func (r taskRoot) Open(name string) (fs.File, error) { return r.files.Open(r.name(name)) }

// ReadLink and Lstat implement fs.ReadLinkFS.
func (r taskRoot) ReadLink(name string) (string, error) {
	return fs.ReadLink(r.files, r.name(name))
}

func (r taskRoot) Lstat(name string) (fs.FileInfo, error) {
	return fs.Lstat(r.files, r.name(name))
}

// Accessible implements envmap.Accessible.
func (r taskRoot) Accessible(name string) bool {
	if r.task.Accessible != nil {
		return r.task.Accessible(name)
	}
	files, ok := r.files.(envmap.Accessible)
	return !ok || files.Accessible(name)
}

// taskProc is /proc as all tasks of this agent together may read it: what the kernel shows of a
// process in detail it may show only to its ancestors (Yama).
type taskProc struct {
	files fs.FS
	tasks []Task
}

func (p taskProc) Open(name string) (fs.File, error)          { return p.files.Open(name) }
func (p taskProc) ReadLink(name string) (string, error)       { return fs.ReadLink(p.files, name) }
func (p taskProc) Lstat(name string) (fs.FileInfo, error)     { return fs.Lstat(p.files, name) }
func (p taskProc) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(p.files, name) }

// ReadFile reads a file, by another task if this process may not.
func (p taskProc) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(p.files, name)
	for _, t := range p.tasks {
		if !errors.Is(err, fs.ErrPermission) {
			break
		}
		text, err = t.ReadFile("/proc/" + name)
	}
	return text, err
}

// planTasks plans the workers of the other tasks of this node.
func planTasks(l *Local) error {
	for i := range l.Config.Tasks {
		t := &l.Config.Tasks[i]
		other := &Local{
			Config: t.config(l.Config), task: t, env: envmap.ParseEnv(t.Environ), Job: l.Job,
			sharing: l.sharing,
		}
		other.shown = l.shown
		if _, err := other.place(); err != nil {
			return err
		}
		_ = other.countWorkers() // a problem that is found again
		l.tasks = append(l.tasks, other)
	}
	return nil
}

// localTasks are all tasks of an agent, in the order of their workers. The first one is its own.
type localTasks []*Local

func (l *Local) all() localTasks { return append(localTasks{l}, l.tasks...) }

// isOnly tells whether the job has no other agent.
func isOnly(l *Local) bool { return len(l.all()) == l.Agents }

// first is the task with the lowest rank.
func (all localTasks) first() *Local {
	return slices.MinFunc(all, func(a, b *Local) int {
		return cmp.Compare(a.Placement.Rank, b.Placement.Rank)
	})
}

// records are the tasks as the agent publishes them.
func (all localTasks) records() (list []rdzv.Task) {
	for _, t := range all {
		p := t.Placement
		list = append(list, rdzv.Task{Rank: p.Rank, LocalRank: p.LocalRank, Slots: t.Workers})
	}
	return list
}

// others are the launcher's ranks of the tasks but the agent's own, such as "1-7"; "" if there are
// none.
func (all localTasks) others() string {
	var ranks []int
	for _, t := range all[1:] {
		ranks = append(ranks, t.Placement.Rank)
	}
	return record.Ranges(ranks)
}

// otherPMI are the descriptors of the other tasks by which Hydra's ranks exchange values.
func (all localTasks) otherPMI() (list []int) {
	for _, t := range all[1:] {
		if t.task.PMI > 0 {
			list = append(list, t.task.PMI)
		}
	}
	return list
}

// workers is the number of workers of all tasks.
func (all localTasks) workers() (n int) {
	for _, t := range all {
		n += t.Workers
	}
	return n
}

// of is the task that the i-th worker of the agent belongs to.
func (all localTasks) of(i int) *Local {
	for _, t := range all {
		if i -= t.Workers; i < 0 {
			return t
		}
	}
	return nil
}

// problems are those of all tasks, each once.
func (all localTasks) problems() (problems []rdzv.Problem) {
	for _, t := range all {
		for _, p := range t.Problems {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
	}
	return problems
}

// copied is a copy of l and of its tasks.
func copied(l *Local) *Local {
	other := *l
	other.tasks = slices.Clone(l.tasks)
	for i, t := range other.tasks {
		task := *t
		other.tasks[i] = &task
	}
	return &other
}
