package wrap

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// hungFile returns a file whose writes hang in the kernel until release is called: a FUSE file
// system that is a single file, and whose server does not answer them. The test may mount it.
func hungFile(t *testing.T) (file *os.File, release func()) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	device := proctest.MountFUSE(t, name, unix.S_IFREG|0o600)
	served := make(chan struct{})
	go func() { defer close(served); serveFile(device) }()
	release = func() {
		unix.Unmount(name, unix.MNT_FORCE|unix.MNT_DETACH) // ends what hangs
		<-served
		unix.Close(device)
	}
	err := tryOnce(name)
	if err == nil {
		file, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	}
	if err != nil {
		release()
		t.Fatal(err)
	}
	return file, release
}

// tryOnce opens, polls and closes a file. The kernel asks the server for the last two, and never
// again because the server has neither. Otherwise it would ask for a poll in os.OpenFile, and for a
// flush when a child closes the file in exec(2). The garbage collector waits for these two, and the
// server, in the same process, may wait for the garbage collector.
func tryOnce(name string) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 0)
	unix.Close(fd) // fails if there is no flush
	return err
}

// serveFile answers the requests of the kernel (linux/fuse.h), except writes, until the file system
// is unmounted.
func serveFile(device int) {
	const getattr, open, write, release, initialise, interrupt = 3, 14, 16, 18, 26, 36
	le := binary.LittleEndian
	b := make([]byte, 1<<20)
	for {
		n, err := unix.Read(device, b)
		if err == unix.EINTR || err == unix.ENOENT {
			continue
		} else if err != nil || n < 40 {
			return
		}
		var reply []byte
		errno := int32(0)
		switch le.Uint32(b[4:]) {
		case write, interrupt:
			continue
		case initialise:
			reply = le.AppendUint32(le.AppendUint32(nil, 7), 31) // version
			reply = append(reply, make([]byte, 56)...)
			le.PutUint32(reply[20:], 1<<16) // the longest write
		case getattr:
			reply = make([]byte, 104)
			le.PutUint64(reply[16:], 1)                  // inode
			le.PutUint32(reply[76:], unix.S_IFREG|0o600) // mode
			le.PutUint32(reply[80:], 1)                  // links
		case open:
			reply = make([]byte, 16)
			le.PutUint32(reply[8:], 1) // writes are not cached
		case release:
		default:
			errno = -int32(unix.ENOSYS)
		}
		answer := le.AppendUint32(nil, uint32(16+len(reply)))
		answer = le.AppendUint32(answer, uint32(errno))
		answer = append(append(answer, b[8:16]...), reply...)
		unix.Write(device, answer)
	}
}

// TestHungLog: Run returns although a write to a log hangs in the kernel.
func TestHungLog(t *testing.T) {
	if !proctest.MayMount(t) {
		return
	}
	nothingLeft(t)
	file, release := hungFile(t)
	out, shown := output(t)
	w := sh(t, "echo text")
	w.Stdout, w.Output = out, &Output{Log: file}
	var reports []int64
	begun := time.Now()
	results, err := Run(t.Context(), Tree{
		Workers: []Worker{w},
		LogLost: func(_ int, reason error, bytes int64) {
			if !errors.Is(reason, ErrLogBlocked) {
				t.Errorf("the log is lost because of %v, want %v", reason, ErrLogBlocked)
			}
			reports = append(reports, bytes)
		},
	})
	took := time.Since(begun)
	if err != nil || results[0].Code != 0 || len(reports) != 2 || reports[1] != 5 {
		t.Errorf("%+v, %v, reported %d; want success, 0 and 5 bytes", results, err, reports)
	}
	if text := shown(); text != "text\n" {
		t.Errorf("%q was shown", text)
	}
	if took > 20*time.Second {
		t.Errorf("Run returned after %v, want 9 s", took)
	}
	t.Logf("Run returned after %v", took)
	release()
	file.Close() // which would wait for that write: Linux 6.12
}
