// Package watchdog is the process between an agent and its workers: it starts them, reaps them, stops them, and
// kills its whole tree as soon as the agent is gone.
//
// It is this very binary, executed anew with Name as its argv[0], and lives in an init function. Go initialises
// packages in the order of their import paths as soon as all that they import is ready; "rdzv/..." sorts before
// "reflect", which fmt, encoding/* and with them nearly every other package wait for. So it answers after about 25 small
// inits (0.4 ms) and not after 265 (10 ms, most of them etcd's), and the memory that those touch is never touched. The
// price: this package and what it imports may import only os, os/signal, syscall, time, io, errors, strconv and their
// like; a test looks at the order.
//
// Its descriptors: 0 the socket to the agent, 1 the pipe of the sentinel (see sentinel.go), 2 /dev/null, and above
// whatever the agent was itself started with: a launcher's descriptors reach the workers under their own numbers.
package watchdog

import (
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
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
	if err != nil || !becomeSubreaper() {
		return 1
	}
	setName(Name)
	children := swallowSignals()
	w := watch{byPID: map[int]int{}, told: map[int]bool{}}
	if args[3] == "true" {
		w.sentinel = startSentinel(group)
	}
	spec, files, err := receive(0)
	if err != nil {
		return 1
	}
	w.agent = os.NewFile(0, "agent")
	orders := make(chan Record)
	go read(w.agent, orders)
	w.start(spec, files, orders)
	w.watch(children, orders)
	return 0
}

// setName is for ps and killall, which would show "exe".
func setName(name string) {
	text := append([]byte(name), 0)
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetName, uintptr(unsafe.Pointer(&text[0])), 0)
}

// prSetChildSubreaper makes orphaned descendants children of this process rather than of init.
const prSetChildSubreaper = 36

func becomeSubreaper() bool {
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
	return errno == 0
}

// deadly are the signals that a Go program dies of or stops at unless it has asked for them. All others that can be
// survived are caught from the start and do nothing (package os/signal, "Default behavior of signals in Go programs"); to
// ask for them too would cost 45 µs each, four changes of thread, and 64 ranks start 64 watchdogs.
var deadly = []syscall.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGTERM,
	syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
	syscall.SIGILL, syscall.SIGTRAP, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGSTKFLT, syscall.SIGSYS,
}

// swallowSignals survives every signal that can be survived, and returns a channel that tells of the end of children.
//
// The signals get a handler and not SIG_IGN, which the workers would inherit; those ignored from the start
// (nohup) stay so, for this process and for the workers.
func swallowSignals() <-chan os.Signal {
	ignored := IgnoredSignals()
	all := make(chan os.Signal, 1)
	for _, s := range deadly {
		if !ignored.Has(s) {
			signal.Notify(all, s)
		}
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD, sentinelEnd)
	return children
}

// read passes on the agent's orders and closes the channel when the agent has gone.
func read(agent io.Reader, orders chan<- Record) {
	defer close(orders)
	var b [RecordSize]byte
	for {
		if _, err := io.ReadFull(agent, b[:]); err != nil {
			return
		}
		orders <- ParseRecord(b[:])
	}
}

// tick is how often the tree is looked at while it is being stopped: an orphan is adopted without a signal.
const tick = 10 * time.Millisecond

// watch obeys orders until nothing is left of the tree, after Stop, Kill or the agent's death.
func (w *watch) watch(children <-chan os.Signal, orders <-chan Record) {
	clock := time.NewTicker(time.Hour)
	defer clock.Stop()
	for seen, look := running, true; !w.advance(time.Now(), look); {
		if w.phase != seen {
			seen = w.phase
			clock.Reset(seen.tick())
		}
		look = false
		select {
		case <-children:
		case <-clock.C:
			look = true
		case order, ok := <-orders:
			if !ok {
				order, orders = Record{Kind: Kill}, nil
			}
			w.obey(order)
			look = order.Kind == Kill
		}
	}
}
