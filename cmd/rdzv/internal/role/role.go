// Package role decides, before the rest of the program is initialised, whether "rdzv exec" is an
// agent: one task of each node is, the others only run their workers, as that agent orders (package
// wrap/tasks). A task that no launcher has placed, or that is alone on its node, is an agent of
// its own, as are all with --launcher NAME.
//
// The initialisation of what an agent needs, above all of etcd's packages, takes about 10 ms of CPU
// time and some MB of memory, which the other tasks save: the init function of this package runs
// their workers and exits. See package early about the order of initialisation: this package must
// not import net, path/filepath, regexp or runtime/debug, or what does.
package role

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rdzv/cmd/rdzv/internal/early"
	"rdzv/cmd/rdzv/internal/turn"
	"rdzv/envmap"
	"rdzv/internal/daemon"
	"rdzv/internal/procfs"
	"rdzv/wrap/tasks"
)

// Err is why this process is an agent of its own task alone although other tasks of its node could
// share one; nil if there are none or they do.
var Err error

var (
	listener *tasks.Listener // nil unless other tasks may come
	others   int             // how many
)

func init() {
	if len(os.Args) < 2 || os.Args[1] != "exec" {
		return
	}
	environ := os.Environ()
	addr, place := address(os.Args[2:], environ, procfs.System, os.Getpid())
	if addr == "" {
		return
	}
	useAll := use(fewProcessors, environ)
	var conn *tasks.Conn
	listener, conn, Err = tasks.Meet(addr, place.LocalRank == 0)
	if others = place.LocalSize - 1; conn != nil {
		os.Exit(serve(conn, place, environ))
	}
	useAll()
}

// fewProcessors is how many a task uses that is no agent. If the node has 96, all of them would
// cost it 33 threads instead of 8, 6.2 MB of memory instead of 4.7, and a fifth more CPU time.
const fewProcessors = 2

// use lets Go run at most n threads at the same time, until useAll. Each call stops all of them for
// a moment. From then on Go follows changes of the processors and of the CPU limit again, unless
// the user has given the number.
func use(n int, environ []string) (useAll func()) {
	processors := runtime.GOMAXPROCS(0)
	if processors <= n {
		return func() {}
	}
	runtime.GOMAXPROCS(n)
	given, err := strconv.Atoi(envmap.ParseEnv(environ)["GOMAXPROCS"])
	if err == nil && given > 0 { // as Go reads it
		return func() { runtime.GOMAXPROCS(processors) }
	}
	return runtime.SetDefaultGOMAXPROCS
}

// Tasks waits for the other tasks of this node, in the order of their process IDs, and tells
// whether any are missing. There are none if this process is the agent of its own task alone.
func Tasks(ctx context.Context) (list []*tasks.Task, missing bool) {
	if listener == nil {
		return nil, false
	}
	list = listener.Tasks(ctx, others)
	return list, len(list) < others
}

// address is where the tasks of this node meet; "" if they do not.
func address(
	args, environ []string, proc fs.FS, pid int,
) (string, envmap.Placement) {
	env := envmap.ParseEnv(environ)
	if env["RDZV_LAUNCHER"] != "" || choosesLauncher(args) {
		return "", envmap.Placement{}
	}
	place, err := early.Detect(env, "")
	if err != nil || place.LocalSize < 2 || place.LocalRank == envmap.Unknown {
		return "", place
	}
	by, found := daemon.Of(proc, pid)
	dir, err := os.Getwd()
	if !found || err != nil {
		return "", place
	}
	return tasks.Address(tasks.Identity{
		Job:   place.Job + " " + strconv.Itoa(by.PID) + " " + strconv.FormatUint(by.Start, 10),
		Node:  strconv.Itoa(place.NodeRank),
		Words: append([]string{dir}, args...),
		Env:   environ,
	}), place
}

// choosesLauncher tells whether flags before "--" name a launcher, or ask for help. Without "--"
// they may be those of the program: then each task has an agent of its own, which is right too.
func choosesLauncher(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.ContainsFunc(args, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return slices.Contains([]string{"--launcher", "--help", "-h"}, name)
	})
}

// pmi is a copy of the descriptor by which Hydra's ranks exchange values, nil without one: the
// agent takes part in that for all its tasks, and workers may do so later.
func pmi(environ []string) *os.File {
	fd, err := strconv.Atoi(envmap.ParseEnv(environ)["PMI_FD"])
	if err != nil || fd <= 2 {
		return nil
	}
	copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(copied), "PMI_FD")
}

// serve runs the workers of this task until its agent says with which code to exit.
func serve(conn *tasks.Conn, place envmap.Placement, environ []string) int {
	var found devices
	envmap.VisibleDevices(envmap.ParseEnv(environ), &found)
	dir, _ := os.Getwd()
	var more []*os.File
	if f := pmi(environ); f != nil {
		more = append(more, f)
	}
	turns := turn.Catch()
	code, exit, err := conn.Serve(tasks.Hello{
		Args: os.Args, Env: environ, Dir: dir, Devices: found.accessible,
	}, [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, more...)
	if errors.Is(err, tasks.ErrAgent) && place.LocalRank == 1 { // the others would print the same
		fmt.Fprintf(os.Stderr, "rdzv: lost the agent of this node (pid %d)\n", conn.Agent())
	}
	turns.Await(turn.Turn(exit))
	return code
}
