package stacks

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// statOf is /proc/PID/stat of a process in a state that has used some clock ticks.
func statOf(pid int, state string, ticks int) string {
	return fmt.Sprintf("%d (pt main) %s 1 1 1 0 -1 4194304 1 2 3 4 %d 0 7 8 20 0 1 0 98765 1 10\n",
		pid, state, ticks)
}

// process is a process with one thread and a socket to 10.77.0.12:29500, descriptor 5.
func process(pid int, state, call, wchan string) fstest.MapFS {
	word := func(b ...byte) string { return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(b)) }
	proc := fstest.MapFS{}
	dir := fmt.Sprint(pid, "/")
	task := dir + fmt.Sprint("task/", pid, "/")
	for name, text := range map[string]string{
		dir + "stat": statOf(pid, state, 7), task + "stat": statOf(pid, state, 7),
		task + "syscall": call, task + "wchan": wchan, task + "children": "",
		dir + "fdinfo/9": "pos:\t0\ntfd:        5 events:       19 data: 5  pos:0 ino:0 sdev:1\n",
		dir + "net/tcp": "  sl  local_address rem_address\n   0: " + word(10, 77, 0, 11) + ":BFED " +
			word(10, 77, 0, 12) + ":733C 01 0:0 00:0 0     0        0 71 1 0 20 4 30 10 -1\n",
		dir + "mem": strings.Repeat("\x00", 64) + "\x05\x00\x00\x00\x01\x00\x00\x00",
	} {
		proc[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for fd, target := range map[string]string{
		"3": "/data/shard-2.bin", "4": "pipe:[17]", "5": "socket:[71]", "6": "socket:[72]",
		"7": "/dev/nvidia0", "8": "anon_inode:[eventfd]", "10": "/dev/pts/3",
	} {
		proc[dir+"fd/"+fd] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte(target)}
	}
	return proc
}

// The numbers of system calls differ between architectures.
func TestForeignSystemCalls(t *testing.T) {
	own, _ := ownMachine()
	for machine, want := range map[elf.Machine]string{
		own:         "sleeping (nanosleep)",
		elf.EM_386:  "waiting (system call N of another architecture)",
		elf.EM_S390: "waiting (system call N of another architecture)",
	} {
		number := fmt.Sprint(unix.SYS_NANOSLEEP)
		proc := process(71, "S", number+" 0x1 0x2 0x3", "wait_fn")
		head := binary.LittleEndian.AppendUint16([]byte("\x7fELF\x02\x01\x01"+
			strings.Repeat("\x00", 9)+"\x02\x00"), uint16(machine))
		proc["71/exe"] = &fstest.MapFile{Data: head}
		o := Observer{Proc: proc, Took: 1}
		got := o.Observe(t.Context(), []Worker{{Rank: 1, PID: 71}})[0].Main.Does
		if want = strings.Replace(want, "N", number, 1); got != want {
			t.Errorf("%v: %q, want %q", machine, got, want)
		}
	}
}

// What the kernel shows of a thread, on amd64.
func TestThread(t *testing.T) {
	for call, want := range map[string]Thread{
		"S running":            {Does: "running"},
		"S 202 0x1 0x2 0x3":    {Does: "waiting for another thread (futex)"},
		"S 230 0x0 0x0 0x7ff":  {Does: "sleeping (clock_nanosleep)"},
		"D 0 0x3 0x2 0x3":      {Does: "reading from a file (read), uninterruptible"},
		"S 0 0x4 0x2 0x3":      {Does: "reading from a pipe (read)"},
		"S 0 0x63 0x2 0x3":     {Does: "reading (read)"},
		"S 45 0x5 0x2 0x3":     {Does: "receiving from torch's store in rank 0 (recvfrom)"},
		"S 45 0x6 0x2 0x3":     {Does: "receiving from a socket (recvfrom)"},
		"S 16 0x7 0x2 0x3":     {Does: "calling the driver of a device (ioctl)"},
		"S 1 0xa 0x2 0x3":      {Does: "writing to a terminal (write)"},
		"S 7 0x40 0x1 0x3":     {Does: "waiting for events on torch's store in rank 0 (poll)"},
		"S 232 0x9 0x1 0x3":    {Does: "waiting for events on torch's store in rank 0 (epoll_wait)"},
		"S 7 0x400000 0x1 0x3": {Does: "waiting for events (poll)"},
		"S 998 0x4 0x1 0x3":    {Does: "waiting (system call 998)"},
		"D 58 0x0 0x2 0x3":     {Does: "starting a process (vfork), uninterruptible"},
		"D -1 0x7ffc 0x7ffd":   {Does: "waiting for memory, uninterruptible"},
		"R running":            {Does: "running"},
		"T 202 0x1 0x2 0x3":    {Does: "stopped by a signal"},
		"t 202 0x1 0x2 0x3":    {Does: "stopped by a debugger"},
		"Z 202 0x1 0x2 0x3":    {Does: "ended"},
	} {
		state, call, _ := strings.Cut(call, " ")
		o := Observer{Proc: process(71, state, call, "wait_fn"), Took: 1, MasterPort: 29500}
		got := o.Observe(t.Context(), []Worker{{Rank: 1, PID: 71}})[0].Main
		want.State, want.WChan = state, "wait_fn"
		switch {
		case strings.Contains(want.Does, "store"):
			want.Object = "10.77.0.12:29500"
		case strings.Contains(want.Does, "a file"):
			want.Object = "/data/shard-2.bin"
		case strings.Contains(want.Does, "device"):
			want.Object = "/dev/nvidia0"
		case strings.Contains(want.Does, "terminal"):
			want.Object = "/dev/pts/3"
		}
		if got != want {
			t.Errorf("%s %s: got %+v, want %+v", state, call, got, want)
		}
	}
}

// forbidden is a /proc in which no system call may be read.
type forbidden struct{ fs.FS }

func (f forbidden) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "/syscall") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.FS.Open(name)
}

// What may not be read is a problem, not an error: the state is known. A process that has ended is
// no problem.
func TestForbidden(t *testing.T) {
	o := Observer{Proc: forbidden{process(71, "D", "0 0x3 0x2", "nfs_wait")}, Took: 1}
	got := o.Observe(t.Context(), []Worker{{PID: 71}, {PID: 72}})
	main := Thread{Does: "waiting, uninterruptible", State: "D", WChan: "nfs_wait"}
	if got[0].Main != main || !strings.Contains(got[0].Problem, "permission denied") {
		t.Errorf("got %+v, want %+v and that it is not permitted", got[0], main)
	}
	if got[1].Main.Does != "ended" {
		t.Errorf("a process that has ended is %+v", got[1])
	}
}

// pySpyDump is what "py-spy dump --json" prints, of version 0.4, without fields that are not read.
const pySpyDump = `[
  {"pid": 71, "thread_id": 140, "thread_name": "Thread-1 (_pin_memory_loop)", "os_thread_id": 75,
   "active": false, "owns_gil": false, "frames": [
    {"name": "wait", "filename": "/usr/lib/python3.11/threading.py", "module": null,
     "short_filename": "threading.py", "line": 324, "locals": null}], "process_info": null},
  {"pid": 71, "thread_id": 139, "thread_name": "MainThread", "os_thread_id": 71,
   "active": false, "owns_gil": false, "frames": [
    {"name": "__getitem__", "filename": "/home/u/train.py", "short_filename": null, "line": 12},
    {"name": "<module>", "filename": "/home/u/train.py", "short_filename": "train.py", "line": 0}]}
]`

// The Python stack, if py-spy prints one, and otherwise why not.
func TestPySpy(t *testing.T) {
	python := []string{"__getitem__ (/home/u/train.py:12)", "<module> (train.py)"}
	for name, c := range map[string]struct {
		out  string
		err  error
		want Worker
	}{
		"a stack": {out: pySpyDump, want: Worker{
			Python: python, At: "train.py:12", Others: []Count{{1, "wait (threading.py:324)"}},
		}},
		"not permitted": {err: errors.New("Permission Denied"), want: Worker{
			Problem: "py-spy failed: Permission Denied",
		}},
		"not JSON": {out: "Process 71", want: Worker{
			Problem: "py-spy failed: cannot read what it prints: " +
				"invalid character 'P' looking for beginning of value",
		}},
		"no thread": {out: "[]", want: Worker{Problem: "py-spy failed: it shows no main thread"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observer{Proc: process(71, "S", "230 0x0 0x0", "sleep_fn"), Took: 1}
			var args []string
			o.PySpy = func(_ context.Context, a ...string) ([]byte, error) {
				args = a
				return []byte(c.out), c.err
			}
			c.want.Rank, c.want.PID = 3, 71
			c.want.Main = Thread{"sleeping (clock_nanosleep)", "", "S", "sleep_fn"}
			got := o.Observe(t.Context(), []Worker{{Rank: 3, PID: 71}})[0]
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if line := strings.Join(args, " "); line != "--nonblocking --json --pid 71" {
				t.Errorf("the arguments are %q", line)
			}
		})
	}
}

// A long stack is cut.
func TestLongStack(t *testing.T) {
	frames := strings.Repeat(`{"name": "f", "filename": "`+strings.Repeat("x", 999)+`"},`, 999)
	out := `[{"os_thread_id": 71, "frames": [` + strings.TrimSuffix(frames, ",") + `]}]`
	p, err := parsePySpy([]byte(out), 71, maxFrames)
	stack := p.calls
	if err != nil || len(stack) != maxFrames || len(stack[0]) != maxFrame ||
		stack[maxFrames-1] != "936 more calls" {
		t.Errorf("the stack has %d calls, the last is %q (%v)", len(stack), stack[len(stack)-1], err)
	}
}

// This process: it uses one CPU while it is observed.
func TestThisProcess(t *testing.T) {
	o := Observer{Proc: procfs.System, Took: 200 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		for ctx.Err() == nil {
		}
	}()
	got := o.Observe(ctx, []Worker{{PID: os.Getpid()}})[0]
	cancel()
	<-busy
	if got.PID != os.Getpid() || got.CPU < 10 || len(got.Others) == 0 || got.Problem != NotInstalled {
		t.Errorf("got %+v, want a busy process with several threads", got)
	}
}

// A program instead of py-spy prints a stack, fails, or hangs.
func TestPySpyProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "py-spy")
	script := "#!/bin/sh\n[ $1 = dump ] && case $2 in print) echo $NAME ;; hang) exec sleep 1000 ;; " +
		"*) echo 'Error: Permission Denied\nReason: x' >&2; exit 1 ;; esac\n"
	if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	run := PySpy(file, []string{"NAME=value", "PATH=" + os.Getenv("PATH")})
	for arg, want := range map[string]string{
		"print": "value\n<nil>", "fail": "Permission Denied", "hang": "timed out",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if arg == "hang" {
			ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		}
		out, err := run(ctx, arg)
		cancel()
		if got := fmt.Sprintf("%s%v", out, err); got != want {
			t.Errorf("%s: got %q, want %q", arg, got, want)
		}
	}
}
