package wrap

import (
	"context"
	"errors"
	"os"
	"path"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// Ancestor is an ancestor process of this one.
type Ancestor struct {
	PID  int
	Name string // as ps shows it, at most 15 bytes

	start uint64 // see procfs.Process
	pidfd int    // -1 if the kernel or a sandbox does not support pidfds
}

// Ancestry is the chain of processes from the parent of this process up to a launcher's daemon.
type Ancestry struct {
	chain []Ancestor // from the parent to the daemon
}

// Ancestors opens the ancestors of this process up to the first whose name isDaemon accepts. It
// calls isDaemon with the name that ps shows, of which the kernel keeps 15 bytes, and with the base
// name of the executable. It returns nil if there is no such ancestor: then there is nothing to
// watch (programs under nohup and daemons outlive their parents).
func Ancestors(isDaemon func(name string) bool) *Ancestry {
	a := &Ancestry{}
	child, parent := os.Getpid(), os.Getppid()
	for parent > 0 {
		who, next, ok := openParent(child, parent)
		if !ok {
			break
		}
		a.chain = append(a.chain, who)
		if isDaemon(who.Name) || isDaemon(executableOf(parent)) {
			return a
		}
		child, parent = parent, next
	}
	a.Close()
	return nil
}

// openParent opens the parent of child and returns it and its own parent. A pid may be reused at
// any time, so the pidfd is opened first: if child then still has this parent, it is the right
// process. It fails if the parent has ended meanwhile, or is hidden from this process.
func openParent(child, parent int) (who Ancestor, next int, ok bool) {
	pidfd, err := unix.PidfdOpen(parent, 0)
	if err != nil {
		pidfd = -1 // ENOSYS before Linux 5.3, EPERM in some sandboxes
	}
	stat, err := procfs.Read(procfs.System, parent)
	own, errOwn := procfs.Read(procfs.System, child)
	if err != nil || errOwn != nil || own.Parent != parent {
		unix.Close(pidfd)
		return Ancestor{}, 0, false
	}
	return Ancestor{parent, stat.Name, stat.Start, pidfd}, stat.Parent, true
}

// executableOf is the base name of pid's executable. That of another user's process cannot be read;
// then it is the base name of argv[0].
func executableOf(pid int) string {
	if exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil {
		return path.Base(exe)
	}
	if args := procfs.Arguments(procfs.System, pid); len(args) > 0 {
		return path.Base(args[0])
	}
	return ""
}

// checkInterval is how often /proc is read for processes without a pidfd.
const checkInterval = 250 * time.Millisecond

// Wait waits until an ancestor has ended and returns it, or returns the cause of ctx's end.
func (a *Ancestry) Wait(ctx context.Context) (Ancestor, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return Ancestor{}, err
	}
	defer unix.Close(wake)
	woken := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		close(woken)
	})
	defer func() {
		if !release() {
			<-woken // it must not write to a closed and reused descriptor
		}
	}()
	set := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}}
	timeout := -1
	for _, who := range a.chain {
		// poll(2) ignores a negative descriptor.
		set = append(set, unix.PollFd{Fd: int32(who.pidfd), Events: unix.POLLIN})
		if who.pidfd < 0 {
			timeout = int(checkInterval.Milliseconds())
		}
	}
	for {
		_, err := unix.Poll(set, timeout)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return Ancestor{}, err
		}
		for i, who := range a.chain {
			if set[i+1].Revents != 0 || who.pidfd < 0 && who.ended() {
				return who, nil
			}
		}
		if ctx.Err() != nil {
			return Ancestor{}, context.Cause(ctx)
		}
	}
}

// ended reports whether the process has ended, reading /proc: its pid may have been reused.
func (who Ancestor) ended() bool {
	stat, err := procfs.Read(procfs.System, who.PID)
	if errors.Is(err, unix.ESRCH) {
		return true
	}
	return err == nil && (stat.Start != who.start || stat.State == 'Z' || stat.State == 'X')
}

// KeepDaemon closes all ancestors except the daemon: Wait then ignores the end of the others. It
// must be called before Wait.
func (a *Ancestry) KeepDaemon() {
	last := len(a.chain) - 1
	others := Ancestry{a.chain[:last]}
	others.Close()
	a.chain = a.chain[last:]
}

// Close closes the ancestors. Wait must have returned.
func (a *Ancestry) Close() {
	for i := range a.chain {
		unix.Close(a.chain[i].pidfd)
		a.chain[i].pidfd = -1
	}
}
