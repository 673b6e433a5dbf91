// Package keeper is a process that holds a text in memory for as long as another process, its
// owner, lives, and gives it to whoever of the same user asks. Nothing of it is ever in a file.
//
// It is this very binary, executed anew with Name as its argv[0], and lives in an init function
// before those that make memory of their own, as package watchdog does: it may import only what is
// initialised before "reflect" is.
//
// What the text says does not belong here.
package keeper

import (
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// Name is the keeper's argv[0]. Its only argument is the owner's pid.
const Name = "rdzv-keeper"

// env is the whole environment of a keeper: the agent's may hold a secret, and is none of its
// business.
var env = []string{"GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0"}

// maxText is the longest text in bytes. Any pipe takes it, and any socket, before somebody reads.
const maxText = 4096

var errTooLong = errors.New("the text is too long to be kept")

// Start starts a keeper of the text that answers on l, a unix socket that listens. It outlives the
// caller, in a session of its own.
func Start(l *os.File, owner int, text string) error {
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
	if len(text) > maxText {
		return errTooLong
	}
	if _, err := in.WriteString(text); err != nil {
		return err
	}
	p, err := os.StartProcess("/proc/self/exe", []string{Name, strconv.Itoa(owner)}, &os.ProcAttr{
		Dir: "/", Env: env, Files: []*os.File{l, out, null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	return p.Release()
}

func init() {
	if len(os.Args) == 2 && os.Args[0] == Name {
		os.Exit(run(os.Args[1]))
	}
}

// run is the life of the keeper; its exit code is for curious eyes only.
func run(pid string) int {
	setName(Name)
	closeInherited()
	owner, err := hold(pid)
	if err != nil {
		return 1
	}
	text, err := io.ReadAll(os.NewFile(1, "text"))
	if err != nil {
		return 1
	}
	for {
		gone, asked := owner.wait(0)
		if gone {
			return 0
		}
		if asked {
			answer(0, text)
		}
	}
}

// setName is for ps, which would show "exe".
func setName(name string) {
	text := append([]byte(name), 0)
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0)
}

// closeInherited closes what the launcher and the user's script have left open for their children:
// pipes of the one, that wait for their end, and files of the other. Our own would not have passed
// an exec.
func closeInherited() {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		fd, err := strconv.Atoi(f.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0); errno == 0 && flags&syscall.FD_CLOEXEC == 0 {
			syscall.Close(fd)
		}
	}
}

// answer gives the text to the next who asks, unless that is another user.
func answer(listener int, text []byte) {
	conn, _, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
	if err != nil {
		return
	}
	defer syscall.Close(conn)
	peer, err := syscall.GetsockoptUcred(conn, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err == nil && int(peer.Uid) == os.Geteuid() {
		_, _ = syscall.Write(conn, text) // who has gone needs none
	}
}
