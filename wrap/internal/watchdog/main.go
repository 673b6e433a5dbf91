// Package watchdog is the process between an agent and its workers: it starts them, reaps them, stops them, and
// kills its whole tree as soon as the agent is gone.
//
// It is this very binary, executed anew with Name as its argv[0], and lives in an init function. Go initialises
// packages in the order of their import paths as soon as all that they import is ready; "rdzv/..." sorts before
// "reflect", which fmt, encoding/* and with them nearly every other package wait for. So it answers after about 25 small
// inits (0.4 ms) and not after 265 (10 ms, most of them etcd's), and the memory that those touch is never touched. The
// price: this package and what it imports may import only os, syscall, sync, time, errors, strconv and their
// like; a test looks at the order.
//
// Its descriptors: 0 the socket to the agent, 1 the pipe of the sentinel (see sentinel.go), 2 /dev/null, and above
// whatever the agent was itself started with: a launcher's descriptors reach the workers under their own numbers.
package watchdog

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// Name is the watchdog's argv[0].
const Name = "rdzv-watchdog"

// Args returns the watchdog's argv for an agent in process group group (0: unknown to this pid namespace).
// The agent's pid is there for those who read ps. sentinel asks for a sentinel.
func Args(agent, group int, sentinel bool) []string {
	return []string{Name, strconv.Itoa(agent), strconv.Itoa(group), strconv.FormatBool(sentinel)}
}

func init() {
	if len(os.Args) == 4 && os.Args[0] == Name {
		os.Exit(run(os.Args))
	}
}

// run is the life of the watchdog; its exit code is for curious eyes only.
func run(args []string) int {
	// The main thread: a worker's parent-death signal is tied to the thread that forked it.
	runtime.LockOSThread()
	group, err := strconv.Atoi(args[2])
	if err != nil || prctl(prSetChildSubreaper, 1) != 0 {
		return 1
	}
	name := []byte(Name + "\x00")
	prctl(prSetName, uintptr(unsafe.Pointer(&name[0]))) // for ps and killall, which would show "exe"
	outliveSignals()
	w := watch{starting: true, byPID: map[int]int{}, told: map[int]bool{}}
	if args[3] == "true" {
		w.sentinel = startSentinel(group)
	}
	spec, files, err := receive(agent)
	if err != nil {
		return 1
	}
	w.workers = make([]worker, len(spec.Workers))
	go w.mindAgent()
	w.start(spec, files)
	w.mindChildren()
	select {} // mindAgent ends the process
}

// prctl(2). As a subreaper this process, rather than init, becomes the parent of orphaned descendants.
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
