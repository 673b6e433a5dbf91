package procfs

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
)

// Children lists the children of the process pid, adopted ones and zombies included. A child that
// is created, ends or is adopted meanwhile may be missing: a caller that must see all of them reads
// again until the result stays the same.
//
// The source is PID/task/*/children (proc(5)) or, in a kernel built without CONFIG_PROC_CHILDREN,
// the parent of every process.
func Children(proc fs.FS, pid int) ([]int, error) {
	tasks := path.Join(strconv.Itoa(pid), "task")
	threads, err := fs.ReadDir(proc, tasks)
	if err != nil {
		return nil, err
	}
	var children []int
	for _, thread := range threads {
		text, err := fs.ReadFile(proc, path.Join(tasks, thread.Name(), "children"))
		if err != nil {
			if _, err := fs.Stat(proc, path.Join(tasks, thread.Name())); err != nil {
				continue // the thread has ended
			}
			return childrenByParent(proc, pid)
		}
		for _, field := range bytes.Fields(text) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, nil
}

// FindDescendant returns the first process for which is is true: pid, or a descendant of it; 0 if
// there is none. A descendant whose parent has ended is not found.
func FindDescendant(proc fs.FS, pid int, is func(pid int) bool) int {
	if is(pid) {
		return pid
	}
	children, _ := Children(proc, pid) // a process that has ended has none
	for _, child := range children {
		if found := FindDescendant(proc, child, is); found != 0 {
			return found
		}
	}
	return 0
}

// childrenByParent searches all processes for those whose parent is pid.
func childrenByParent(proc fs.FS, pid int) ([]int, error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, err
	}
	var children []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := Read(proc, child); err == nil && p.Parent == pid {
			children = append(children, child)
		}
	}
	return children, nil
}
