package holder

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"rdzv/internal/openlimit"
	"rdzv/internal/procfs"
)

// read notes where the arguments and the writable memory of this process are, except for that of
// the holder. Without /proc the holder keeps both.
func (o *ownMemory) read(a *arena) {
	o.name = a.text(Name + "\x00\x00\x00\x00")
	if !Forked {
		return
	}
	at, size := procfs.ArgumentMemory(procfs.System, os.Getpid())
	o.arguments = unsafe.Slice((*byte)(pointer(at)), size)
	o.page = uintptr(os.Getpagesize())
	var list []span
	own := a.span()
	add := func(from, to uintptr) {
		const most = 2048 // there is room for more
		if from < to && len(list) < most {
			list = append(list, span{from, to - from})
		}
	}
	all, _ := procfs.Mappings(procfs.System, os.Getpid())
	for _, s := range all {
		if s.Perms != "rw-p" {
			continue
		}
		// The kernel may have joined the arena with others.
		from, to := uintptr(s.Start), uintptr(s.End)
		add(from, min(to, own.at))
		add(max(from, own.at+own.size), to)
	}
	o.writable = copyTo(a, list)
}

// pointer is the pointer to an address that is not in Go's memory.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func statFile(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/stat" }

// peer is the process at the other end of a socket; 0 if it is in another pid namespace.
func peer(socket int) int {
	who, err := syscall.GetsockoptUcred(socket, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil || who.Pid < 0 {
		return 0
	}
	return int(who.Pid)
}

// workerFiles is the open-file limit with which this process was started, if the Go runtime has
// raised it: zero otherwise.
func workerFiles() limit {
	var now syscall.Rlimit
	soft := openlimit.Soft()
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now)
	if err != nil || soft == 0 || now.Cur != now.Max-1 || soft >= now.Cur {
		return limit{}
	}
	return limit{soft, now.Max}
}

// setSignalMask sets the signals that this thread blocks.
func setSignalMask(mask, before *uint64) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(mask)),
		uintptr(unsafe.Pointer(before)), sigsetSize, 0, 0)
}
