package watchdog

import (
	"io"
	"syscall"
)

// RightsMax is how many descriptors the agent sends with one byte on the socket. The kernel's limit
// is 253 (SCM_MAX_FD, unix(7)).
const RightsMax = 200

// receive reads from the agent, in this order: the Hello record, the Spec, and one byte with each
// group of up to RightsMax descriptors.
func receive() (hello Record, spec Spec, files []int, err error) {
	head := make([]byte, RecordSize)
	if _, err := io.ReadFull(agent, head); err != nil {
		return Record{}, Spec{}, nil, err
	}
	if hello = ParseRecord(head); hello.Kind != Hello {
		return Record{}, Spec{}, nil, ErrSpec
	}
	text := make([]byte, hello.A)
	if _, err = io.ReadFull(agent, text); err == nil {
		spec, err = ParseSpec(text)
	}
	if err == nil {
		files, err = receiveFiles(int(hello.B))
	}
	return hello, spec, files, err
}

// receiveFiles receives count descriptors and sets close-on-exec on them.
func receiveFiles(count int) ([]int, error) {
	var files []int
	var one [1]byte
	oob := make([]byte, syscall.CmsgSpace(4*RightsMax))
	for len(files) < count {
		_, n, _, _, err := syscall.Recvmsg(0, one[:], oob, syscall.MSG_CMSG_CLOEXEC)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return nil, err
		}
		messages, err := syscall.ParseSocketControlMessage(oob[:n])
		if err != nil || len(messages) != 1 {
			return nil, ErrSpec // end of file, or the open-file limit dropped the message
		}
		some, err := syscall.ParseUnixRights(&messages[0])
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	return files, nil
}

// startWorker starts worker i in the process group. Its streams are among files.
func (w *watchdog) startWorker(i int, s Worker, group int, files []int) {
	streams := []uintptr{2, 2, 2} // /dev/null
	for stream, at := range s.Files {
		if at != Null {
			streams[stream] = uintptr(files[at])
		}
	}
	if s.Output.Piped {
		ends, err := w.outputs.open(i, s, files)
		for _, fd := range ends {
			defer syscall.Close(fd)
		}
		if err != nil {
			w.refuse(i, err)
			return
		}
		streams[1], streams[2] = uintptr(ends[0]), uintptr(ends[len(ends)-1])
	}
	startedAt := Monotonic()
	pid, err := bound(s, func() (int, error) {
		return syscall.ForkExec(s.Path, s.Args, &syscall.ProcAttr{
			Dir:   s.Dir,
			Env:   s.Env,
			Files: streams,
			Sys: &syscall.SysProcAttr{
				Setpgid: group != 0,
				Pgid:    group,
				// For the case that agent, holder and watchdog are killed at the same time. The
				// signal is tied to the thread that forks: the main thread, which ends with the
				// process.
				Pdeathsig: syscall.SIGKILL,
			},
		})
	})
	if err != nil {
		w.refuse(i, err)
		return
	}
	e := &worker{index: i, pid: pid, startedAt: startedAt}
	w.workers = append(w.workers, e)
	tell(Record{Kind: Started, Index: i, A: int64(pid), B: int64(startedAt)})
	for n, missed := 1, w.queue.missed; missed != 0; n, missed = n+1, missed>>1 {
		if missed&1 != 0 {
			e.send(syscall.Signal(n))
		}
	}
}

// refuse reports that worker i could not be started.
func (w *watchdog) refuse(i int, err error) {
	errno, _ := err.(syscall.Errno) // package syscall returns nothing else
	tell(Record{Kind: Refused, Index: i, A: int64(errno)})
	w.outputs.workerEnded(i)
}
