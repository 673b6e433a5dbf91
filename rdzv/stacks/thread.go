package stacks

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"rdzv/internal/procfs"
)

// inspection reads the threads of one process.
type inspection struct {
	*Observer
	pid     int
	foreign bool         // the numbers of its system calls are not those of callOf
	peers   func() peers // of the sockets of its network namespace
}

// thread reads the state of a thread. The error is that of its system call: only the user of a
// process may read that, or only an ancestor of it, depending on kernel.yama.ptrace_scope.
func (in *inspection) thread(tid int) (t Thread, err error) {
	stat, err := procfs.ReadThread(in.Proc, in.pid, tid)
	if err != nil {
		return Thread{Does: "ended"}, fs.ErrNotExist
	}
	t.State = string(rune(stat.State))
	if wchan, err := in.read("task", strconv.Itoa(tid), "wchan"); err == nil && wchan != "0" {
		t.WChan = wchan // 0 is none, or that it may not be shown
	}
	switch stat.State {
	case 'R':
		t.Does = "running"
		return t, nil
	case 'T':
		t.Does = "stopped by a signal"
		return t, nil
	case 't':
		t.Does = "stopped by a debugger"
		return t, nil
	case 'Z', 'X':
		t.Does = "ended"
		return t, nil
	}
	t.Does = "waiting"
	call, err := in.read("task", strconv.Itoa(tid), "syscall")
	if err == nil {
		t.Does, t.Object = in.describe(strings.Fields(call))
	}
	if stat.State == 'D' {
		t.Does += ", uninterruptible"
	}
	return t, err
}

// read reads a small file of the process.
func (in *inspection) read(names ...string) (string, error) {
	names = append([]string{strconv.Itoa(in.pid)}, names...)
	text, err := fs.ReadFile(in.Proc, path.Join(names...))
	return strings.TrimSpace(string(text)), err
}

// describe tells what a thread is doing from the content of its file "syscall" (proc(5)): the
// number of the system call and its arguments, or "running", or -1 if it waits outside of them.
func (in *inspection) describe(words []string) (does, object string) {
	if len(words) == 0 || words[0] == "running" {
		return "running", ""
	}
	number, err := strconv.Atoi(words[0])
	if err != nil || number < 0 || len(words) < 3 {
		return "waiting for memory", "" // for a page that is not there yet, perhaps of a file
	}
	if in.foreign {
		return fmt.Sprintf("waiting (system call %d of another architecture)", number), ""
	}
	c := callOf(number)
	kind := ""
	switch c.on {
	case descriptor:
		kind, object = in.objects([]int{int(int32(value(words[1])))})
	case pollList:
		kind, object = in.objects(in.polled(value(words[1]), value(words[2])))
	case epollDescriptor:
		kind, object = in.objects(in.watched(int(value(words[1]))))
	}
	does = c.does
	if kind != "" {
		does += " " + c.preposition + " " + kind
	}
	return does + " (" + c.name + ")", object
}

// value is an argument of a system call, such as "0x7ffc".
func value(arg string) uint64 {
	n, _ := strconv.ParseUint(arg, 0, 64) // the kernel prints numbers
	return n
}
