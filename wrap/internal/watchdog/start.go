package watchdog

import (
	"syscall"
	"time"
	"unsafe"
)

// RightsMax is how many descriptors the agent sends with one byte of the socket; the kernel's own limit is 253.
const RightsMax = 200

// receive reads from socket, in this order: the Hello record, one byte for every RightsMax descriptors, which come with
// it, and the spec.
func receive(socket int) (Spec, []int, error) {
	head, err := readFull(socket, RecordSize)
	if err != nil {
		return Spec{}, nil, err
	}
	hello := ParseRecord(head)
	if hello.Kind != Hello {
		return Spec{}, nil, ErrSpec
	}
	files, err := receiveFiles(socket, int(hello.B))
	if err != nil {
		return Spec{}, nil, err
	}
	text, err := readFull(socket, int(hello.A))
	if err != nil {
		return Spec{}, nil, err
	}
	spec, err := ParseSpec(text)
	return spec, files, err
}

// readFull reads exactly n bytes of a blocking descriptor.
func readFull(fd, n int) ([]byte, error) {
	b := make([]byte, n)
	for at := 0; at < n; {
		got, err := syscall.Read(fd, b[at:])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil, err
		case got == 0:
			return nil, syscall.EPIPE
		default:
			at += got
		}
	}
	return b, nil
}

// receiveFiles takes n descriptors, close-on-exec.
func receiveFiles(socket, n int) ([]int, error) {
	var files []int
	var one [1]byte
	oob := make([]byte, syscall.CmsgSpace(4*RightsMax))
	for len(files) < n {
		got, oobn, _, _, err := syscall.Recvmsg(socket, one[:], oob, syscall.MSG_CMSG_CLOEXEC)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return nil, err
		case got == 0:
			return nil, syscall.EPIPE
		}
		messages, err := syscall.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(messages) != 1 {
			return nil, ErrSpec // descriptors that did not fit under our limit arrive as none
		}
		some, err := syscall.ParseUnixRights(&messages[0])
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	return files, nil
}

// start starts the workers one after the other, while orders may come in between, and then closes their descriptors here:
// only so do pipes end when the workers do.
func (w *watch) start(spec Spec, files []int) {
	if spec.TimerSlack > 0 {
		prctl(prSetTimerSlack, uintptr(spec.TimerSlack)) // of this thread, and of what it will start
	}
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	files = append(files, null)
	for i, s := range spec.Workers {
		w.mu.Lock()
		switch {
		case w.phase != running:
			w.tell(Record{Kind: Skipped, Index: i})
		case err != nil:
			w.tell(Record{Kind: Refused, Index: i, A: errnoOf(err)})
		default:
			w.startOne(i, s, spec.Group, files)
		}
		w.mu.Unlock()
	}
	for _, f := range files {
		syscall.Close(f)
	}
	w.mu.Lock()
	w.starting = false
	w.mu.Unlock()
}

// startOne starts worker i in process group group. files ends with /dev/null.
func (w *watch) startOne(i int, s Worker, group int, files []int) {
	var streams []uintptr
	for _, f := range s.Files {
		if f < 0 || f >= len(files) {
			f = len(files) - 1
		}
		streams = append(streams, uintptr(files[f]))
	}
	begun := Monotonic()
	pid, err := syscall.ForkExec(s.Path, s.Args, &syscall.ProcAttr{
		Dir:   s.Dir,
		Env:   s.Env,
		Files: streams,
		Sys: &syscall.SysProcAttr{
			Setpgid: group != 0,
			Pgid:    group,
			// For the one case that no survivor can see to: agent and watchdog killed in one breath (pkill -9 rdzv).
			// The signal is tied to the thread that forks, here the main thread, which lasts as long as the process.
			Pdeathsig: syscall.SIGKILL,
		},
	})
	if err != nil {
		w.tell(Record{Kind: Refused, Index: i, A: errnoOf(err)})
		return
	}
	w.workers[i] = worker{pid: pid, begun: begun}
	w.byPID[pid] = i
	w.live++
	w.tell(Record{Kind: Started, Index: i, A: int64(pid), B: int64(begun)})
}

// Monotonic is the time of the clock that all processes of this machine share and nobody sets.
func Monotonic() time.Duration {
	const clockMonotonic = 1
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}

func errnoOf(err error) int64 {
	if errno, ok := err.(syscall.Errno); ok {
		return int64(errno)
	}
	return int64(syscall.EIO)
}

// tell sends r to the agent. That it has died is noticed where its orders are read.
func (w *watch) tell(r Record) {
	for b := r.Bytes(); len(b) > 0; {
		n, err := syscall.Write(agent, b)
		if err != nil && err != syscall.EINTR {
			return
		}
		b = b[max(n, 0):]
	}
}
