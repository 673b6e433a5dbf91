// Package watchdog is the process between an agent and its workers. It starts the workers, waits
// for them, stops them, and kills the whole tree as soon as the agent has ended.
//
// The watchdog is the agent's own executable, started again with Name as argv[0], and runs in an
// init function of this package. Go initialises packages in the order of their import paths as soon
// as all their imports are initialised. "rdzv/..." sorts before "reflect", which fmt, encoding/*
// and most other packages need. So the watchdog starts after about 25 small packages (0.4 ms)
// instead of 265 (10 ms, most of them etcd's), and the memory that those would use is never
// allocated. Therefore this package and its imports may import only os, syscall, sync, time,
// errors, strconv and similar packages. TestWatchdogStartsBeforeHeavyPackages in package wrap
// checks that.
//
// Descriptors: 0 is the socket to the agent, 1 the pipe of the sentinel (see sentinel.go), 2
// /dev/null. The others are those that the agent inherited: the descriptors of a launcher reach the
// workers under their own numbers.
package watchdog

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// Name is the argv[0] of the watchdog.
const Name = "rdzv-watchdog"

// Args returns the argv of the watchdog of an agent: agent is its pid, group its process group, or
// 0 if this pid namespace has no number for it. With sentinel the watchdog starts a sentinel.
func Args(agent, group int, sentinel bool) []string {
	return []string{Name, strconv.Itoa(agent), strconv.Itoa(group), strconv.FormatBool(sentinel)}
}

func init() {
	if len(os.Args) == 4 && os.Args[0] == Name {
		os.Exit(run(os.Args))
	}
}

// run is the main function of the watchdog. It returns only if the watchdog could not start, with
// its exit code, which nothing reads.
func run(args []string) int {
	// The parent-death signal of a worker is tied to the thread that forks it: the main thread.
	runtime.LockOSThread()
	group, err := strconv.Atoi(args[2])
	if err != nil || prctl(prSetChildSubreaper, 1) != 0 {
		return 1
	}
	name := []byte(Name + "\x00")
	prctl(prSetName, uintptr(unsafe.Pointer(&name[0]))) // otherwise ps and killall show "exe"
	surviveSignals()
	w := newWatchdog()
	w.freeze.agent, _ = strconv.Atoi(args[1])
	if args[3] == "true" {
		w.sentinel.pid = startSentinel(group)
	}
	hello, spec, files, err := receive()
	if err != nil {
		return 1
	}
	if hello.C > 0 {
		prctl(prSetTimerSlack, uintptr(hello.C)) // that of this thread, which the workers inherit
	}
	w.queue = queue{spec: spec.Workers, group: group, files: files}
	w.crash = spec.Crash.withOwn(files)
	go w.serveChildren()
	w.serveAgent()
	return 0
}

// Options of prctl(2). A child subreaper becomes the parent of its orphaned descendants.
const (
	prSetPdeathsig      = 1
	prSetName           = 15
	prSetTimerSlack     = 29
	prSetChildSubreaper = 36
)

func prctl(option int, arg uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, uintptr(option), arg, 0)
	return errno
}
