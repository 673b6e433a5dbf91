package wrap

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// Ancestor is a process that this one descends from.
type Ancestor struct {
	PID  int
	Name string // its name as ps shows it, at most 15 bytes

	start uint64
	pidfd int // -1 where the kernel or a sandbox allows none
}

// Ancestry is the line of processes from this one's parent up to a launcher's daemon.
type Ancestry struct {
	// Line begins with the parent and ends with the daemon.
	Line []Ancestor
}

// Ancestors follows the parents of this process up to the first whose name isDaemon accepts, and holds on to each of
// them. The names that isDaemon is asked are those of ps and of the program's file, so that "hydra_pmi_proxy", of 15
// bytes, and longer ones are told alike. It returns nil if there is no such ancestor: then there is nothing to watch
// (nohup and daemons outlive their parents).
func Ancestors(isDaemon func(name string) bool) *Ancestry {
	a := &Ancestry{}
	child, parent := os.Getpid(), os.Getppid()
	for parent > 0 {
		who, next, err := hold(child, parent)
		if err != nil {
			break // it has ended meanwhile, or is hidden from us: the line ends here
		}
		a.Line = append(a.Line, who)
		if isDaemon(who.Name) || isDaemon(programOf(parent)) {
			return a
		}
		child, parent = parent, next
	}
	a.Close()
	return nil
}

// errNotParent says that a process is not the parent of another any more.
var errNotParent = errors.New("not its parent")

// hold holds on to parent and returns it and its own parent. A pid may pass to another process at any time, so the pidfd
// comes first; that child then still has this parent proves that it is the right one.
func hold(child, parent int) (Ancestor, int, error) {
	pidfd, err := unix.PidfdOpen(parent, 0)
	if errors.Is(err, unix.ESRCH) {
		return Ancestor{}, 0, err
	}
	if err != nil {
		pidfd = -1 // ENOSYS before Linux 5.3, EPERM in some sandboxes
	}
	stat, err := procfs.Read(procfs.System, parent)
	if err == nil && !isParent(child, parent) {
		err = errNotParent
	}
	if err != nil {
		if pidfd >= 0 {
			unix.Close(pidfd)
		}
		return Ancestor{}, 0, err
	}
	return Ancestor{PID: parent, Name: stat.Name, start: stat.Start, pidfd: pidfd}, stat.Parent, nil
}

func isParent(child, parent int) bool {
	stat, err := procfs.Read(procfs.System, child)
	return err == nil && stat.Parent == parent
}

// programOf is the name of pid's program file as far as it can be seen: that of another user's process cannot, its
// first argument can.
func programOf(pid int) string {
	if exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil {
		return filepath.Base(exe)
	}
	if args := procfs.Arguments(procfs.System, pid); len(args) > 0 {
		return filepath.Base(args[0])
	}
	return ""
}

// lookEvery is how often processes are looked at that cannot be held by pidfd.
const lookEvery = 250 * time.Millisecond

// Wait returns the ancestor that ended first, or ctx's cause when ctx has ended.
func (a *Ancestry) Wait(ctx context.Context) (Ancestor, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return Ancestor{}, err
	}
	defer unix.Close(wake)
	woken := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(woken)
		_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	})
	who, err := a.poll(ctx, wake)
	if !release() {
		<-woken // it must not write to a descriptor that is another's by then
	}
	return who, err
}

// poll waits for an end of the Line or of ctx, which writes to wake.
func (a *Ancestry) poll(ctx context.Context, wake int) (Ancestor, error) {
	set := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}}
	timeout := -1
	for _, who := range a.Line {
		set = append(set, unix.PollFd{Fd: int32(who.pidfd), Events: unix.POLLIN}) // one below 0 is passed over
		if who.pidfd < 0 {
			timeout = int(lookEvery.Milliseconds())
		}
	}
	for {
		_, err := unix.Poll(set, timeout)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return Ancestor{}, err
		}
		for i, who := range a.Line {
			if set[i+1].Revents != 0 || who.pidfd < 0 && who.ended() {
				return who, nil
			}
		}
		if ctx.Err() != nil {
			return Ancestor{}, context.Cause(ctx)
		}
	}
}

// ended looks whether the process is gone or another has its pid.
func (who Ancestor) ended() bool {
	stat, err := procfs.Read(procfs.System, who.PID)
	if errors.Is(err, unix.ESRCH) {
		return true
	}
	return err == nil && (stat.Start != who.start || stat.State == 'Z' || stat.State == 'X')
}

// KeepDaemon lets go of all ancestors but the daemon: those between may end. Wait must not have begun.
func (a *Ancestry) KeepDaemon() {
	last := len(a.Line) - 1
	between := Ancestry{a.Line[:last]}
	between.Close()
	a.Line = a.Line[last:]
}

// Close lets go of the ancestors. Wait must have returned.
func (a *Ancestry) Close() {
	for i := range a.Line {
		if fd := a.Line[i].pidfd; fd >= 0 {
			unix.Close(fd)
		}
		a.Line[i].pidfd = -1
	}
}
