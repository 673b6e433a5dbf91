// Package keeper implements a process that keeps a text in memory as long as another process, its
// owner, lives, and sends it to every process of the same user that connects. The text is never
// written to a file.
//
// The process executes this binary again. It runs in an init function before most packages are
// initialised, so this package may import only what is initialised before
// "reflect".
package keeper

import (
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// Name is the keeper's argv[0]. Its arguments are OwnerFlag with the pid of the owner, and the
// socket file.
const Name = "rdzv-keeper"

// OwnerFlag identifies a keeper: argv[0] may be replaced by the path of the program (binfmt_misc
// without the flag P).
const OwnerFlag = "--rdzv-keeper-of="

// maxText is the maximum length of the text in bytes. A pipe or socket buffer holds that much
// before anybody reads it.
const maxText = 4096

// Start starts a keeper of the text, with a socket file of that name in dir, an absolute path that
// only this user can access. The error is syscall.EADDRINUSE if another keeper has that file. The
// keeper outlives the caller and has a session of its own.
func Start(dir, name string, owner int, text string) error {
	if len(text) > maxText {
		return errors.New("text too long for a keeper")
	}
	l, err := listen(dir, name)
	if err != nil {
		return err
	}
	defer l.Close()
	path := dir + "/" + name
	if err := start(l, owner, path, text); err != nil {
		os.Remove(path)
		return err
	}
	return nil
}

func start(l *os.File, owner int, path, text string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	defer in.Close()
	if _, err := in.WriteString(text); err != nil {
		return err
	}
	args := []string{Name, OwnerFlag + strconv.Itoa(owner), path}
	p, err := os.StartProcess("/proc/self/exe", args, &os.ProcAttr{
		Dir: "/", Files: []*os.File{l, out, null}, Sys: &syscall.SysProcAttr{Setsid: true},
		// The agent's environment is not inherited, because it may contain a secret.
		Env: []string{"GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0"},
	})
	if err != nil {
		return err
	}
	return p.Release()
}

func init() {
	const n = len(OwnerFlag)
	if len(os.Args) == 3 && len(os.Args[1]) > n && os.Args[1][:n] == OwnerFlag {
		os.Exit(run(os.Args[1][n:], os.Args[2]))
	}
}

// run runs the keeper until its owner ends, and returns the exit code. Nobody reads the code.
func run(pid, path string) int {
	defer os.Remove(path)
	name := append([]byte(Name), 0) // for ps, which would show "exe"
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0)
	closeInherited()
	owner, err := openOwner(pid)
	if err != nil {
		return 1
	}
	text, err := io.ReadAll(os.NewFile(1, "text"))
	if err != nil {
		return 1
	}
	for {
		ended, connected := owner.wait(0)
		if ended {
			return 0
		}
		if connected {
			send(0, text)
		}
	}
}

// closeInherited closes descriptors that were inherited from the launcher or the user's script,
// such as a pipe whose end of file the launcher waits for. Descriptors that this process has opened
// are marked close-on-exec.
func closeInherited() {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		fd, err := strconv.Atoi(f.Name())
		if err != nil || fd <= 2 {
			continue
		}
		flags, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if errno == 0 && flags&syscall.FD_CLOEXEC == 0 {
			syscall.Close(fd)
		}
	}
}

// send accepts one connection and sends it the text, unless another user has connected.
func send(listener int, text []byte) {
	conn, _, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
	if err != nil {
		return
	}
	defer syscall.Close(conn)
	peer, err := syscall.GetsockoptUcred(conn, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err == nil && int(peer.Uid) == os.Geteuid() {
		_, _ = syscall.Write(conn, text) // an error means that the peer has closed the connection
	}
}

// An owner is the process whose end ends the keeper. An open stat file always belongs to the same
// process, even if its pid is reused.
type owner struct {
	stat  *os.File
	pidfd int // -1 if the kernel or a sandbox does not allow pidfd_open
}

// sysPidfdOpen is the number of pidfd_open(2) on all architectures. Package syscall does not define
// it.
const sysPidfdOpen = 434

func openOwner(pid string) (*owner, error) {
	number, err := strconv.Atoi(pid)
	if err != nil {
		return nil, err
	}
	stat, err := os.Open("/proc/" + pid + "/stat")
	if err != nil {
		return nil, err
	}
	o := &owner{stat: stat, pidfd: -1}
	if fd, _, errno := syscall.RawSyscall(sysPidfdOpen, uintptr(number), 0, 0); errno == 0 {
		o.pidfd = int(fd)
	}
	if o.ended() { // it ended before the pidfd was opened, which may belong to another process
		return nil, os.ErrProcessDone
	}
	return o, nil
}

// ended reports whether the process has ended: reading its stat file then fails.
func (o *owner) ended() bool {
	_, err := o.stat.ReadAt(make([]byte, 1), 0)
	return err != nil
}

// pollInterval is how often an owner is checked that has no pidfd.
const pollInterval = 250 * time.Millisecond

type pollFD struct {
	fd              int32
	events, revents int16
}

const pollIn = 1

// wait returns when the owner has ended or a process connects to the listener.
func (o *owner) wait(listener int) (ended, connected bool) {
	fds := [...]pollFD{{fd: int32(o.pidfd), events: pollIn}, {fd: int32(listener), events: pollIn}}
	var limit *syscall.Timespec // nil: no time limit
	if o.pidfd < 0 {
		t := syscall.NsecToTimespec(pollInterval.Nanoseconds())
		limit = &t
	}
	syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)),
		uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	return fds[0].revents != 0 || o.pidfd < 0 && o.ended(), fds[1].revents != 0
}
