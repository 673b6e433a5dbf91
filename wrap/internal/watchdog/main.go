// Package watchdog is the process between an agent and its workers. It starts the workers, waits
// for them, stops them, and kills the whole tree as soon as the agent has ended.
//
// The watchdog, and the holder that starts it (see holder.go), are the agent's own executable,
// started again, and run in an init function of this package. Go initialises packages in the order
// of their import paths as soon as all their imports are initialised. "rdzv/..." sorts before
// "reflect", which fmt, encoding/* and most other packages need. So the watchdog starts after about
// 25 small packages (0.4 ms) instead of 265 (10 ms, most of them etcd's), and the memory that those
// would use is never allocated. Therefore this package and its imports may import only os, syscall,
// sync, time, errors, strconv and similar packages. TestWatchdogStartsBeforeHeavyPackages in
// package wrap checks that.
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

// Name is the argv[0] of the watchdog, and its name as ps shows it.
const Name = "tree-watchdog"

// What argv[1] of holder and watchdog begins with. argv[0] alone may be replaced by the path of the
// program (binfmt_misc without the flag P).
const (
	holderPrefix   = "--wrap-holder-of="
	watchdogPrefix = "--wrap-watchdog-of="
)

// start is what holder and watchdog know from their arguments.
type start struct {
	agent, group int
	sentinel     bool
}

// Args returns the argv of the holder of an agent: agent is its pid, group its process group, or 0
// if this pid namespace has no number for it. With sentinel the watchdog starts a sentinel.
func Args(agent, group int, sentinel bool) []string {
	return start{agent, group, sentinel}.args(HolderName, holderPrefix)
}

func (s start) args(name, prefix string) []string {
	return []string{
		name, prefix + strconv.Itoa(s.agent), strconv.Itoa(s.group),
		strconv.FormatBool(s.sentinel),
	}
}

// parseStart is the inverse of args, whatever the name.
func parseStart(args []string, prefix string) (s start, ok bool) {
	if len(args) != 4 || len(args[1]) < len(prefix) || args[1][:len(prefix)] != prefix {
		return s, false
	}
	var err1, err2, err3 error
	s.agent, err1 = strconv.Atoi(args[1][len(prefix):])
	s.group, err2 = strconv.Atoi(args[2])
	s.sentinel, err3 = strconv.ParseBool(args[3])
	return s, err1 == nil && err2 == nil && err3 == nil
}

func init() {
	if s, ok := parseStart(os.Args, holderPrefix); ok {
		os.Exit(hold(s))
	}
	if s, ok := parseStart(os.Args, watchdogPrefix); ok {
		os.Exit(run(s))
	}
}

// run is the main function of the watchdog. It returns only if the watchdog could not start, with
// its exit code.
func run(s start) int {
	// The parent-death signal of a worker is tied to the thread that forks it: the main thread.
	runtime.LockOSThread()
	if prctl(prSetChildSubreaper, 1) != 0 {
		return 1
	}
	setName(Name)
	surviveSignals()
	w := newWatchdog()
	w.freeze.agent = s.agent
	if s.sentinel {
		w.sentinel.pid = startSentinel(s.group)
	}
	tell(Record{Kind: Up, A: int64(os.Getpid())})
	hello, spec, files, err := receive()
	if err != nil {
		return 1
	}
	if hello.C > 0 {
		prctl(prSetTimerSlack, uintptr(hello.C)) // that of this thread, which the workers inherit
	}
	w.queue = queue{spec: spec.Workers, group: s.group, files: files}
	w.crash = spec.Crash.withOwn(files)
	w.lease.until, w.lease.grace = spec.LeaseUntil, spec.LeaseGrace
	w.lease.paused = w.lease.over() // the agent was stopped before it started this process
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

// setName sets the name that ps shows, which would be "exe".
func setName(name string) {
	b := []byte(name + "\x00")
	prctl(prSetName, uintptr(unsafe.Pointer(&b[0])))
}

func prctl(option int, arg uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, uintptr(option), arg, 0)
	return errno
}
