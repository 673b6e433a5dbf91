// Command rdzv runs a PyTorch program that consists of several processes as one job under any
// launcher. Run "rdzv help".
package main

import (
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/envmap"
)

// The kernel hands a signal to the main thread first. That thread runs nothing but main, which only
// waits: a file system that does not respond blocks a thread so that it takes no signal but
// SIGKILL. A task that is no agent does not get here: package role serves its agent, and exits.
func init() { runtime.LockOSThread() }

func main() { runProcess(time.Now) }

// runProcess runs the command of this process, and ends it. Lines about a running job have the time
// that now returns, or none if it is nil.
func runProcess(now func() time.Time) {
	code := make(chan int)
	go func() { code <- newApp(now).run(os.Args[1:]) }()
	os.Exit(<-code)
}

// newApp is the run of the command in this process.
func newApp(now func() time.Time) *app {
	environ, stderr := os.Environ(), ownStderr()
	env, dir := envmap.ParseEnv(environ), ""
	if file, err := os.Executable(); err == nil {
		dir = filepath.Dir(file)
	}
	return &app{
		now: now, environ: environ, env: env, stdin: os.Stdin, stdout: os.Stdout, stderr: stderr,
		console:  console.New(stderr, console.SettingOf(env)),
		dir:      dir,
		commands: allCommands(),
	}
}

// ownStderr is stderr under another number than 2, because Go ends a process that gets EPIPE when
// it writes there.
func ownStderr() *os.File {
	fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stderr
	}
	return os.NewFile(uintptr(fd), "/dev/stderr")
}
