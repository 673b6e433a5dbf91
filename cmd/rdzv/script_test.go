package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Each file of testdata is a story of a user, its first word the command it is
// about. Each has a home, a temporary and a runtime directory of its own, and must
// leave nothing in them and no process behind.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		Setup:               setUp,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": await,
			"exits": exits,
			"under": under,
			"lines": lines,
			"port":  port,
			"serve": serve,
		},
		Condition: condition,
	})
}

// setUp gives a story its directories, and looks at its end whether it has left
// something.
func setUp(env *testscript.Env) error {
	for name, dir := range map[string]string{"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run"} {
		path := filepath.Join(env.WorkDir, dir)
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		env.Setenv(name, path)
	}
	env.Setenv("GORACE", noRaceNap)
	env.Setenv("USER_ID", strconv.Itoa(os.Geteuid()))
	env.Setenv("UNSHARE", "-m") // so that a story can mount something
	if os.Geteuid() != 0 {
		env.Setenv("UNSHARE", "-Urm")
	}
	t, ok := env.T().(interface {
		Errorf(string, ...any)
		Failed() bool
	})
	if !ok {
		return fmt.Errorf("cannot tell a story's end from a %T", env.T())
	}
	env.Defer(func() {
		if t.Failed() {
			return // its processes are still to be stopped
		}
		for _, left := range leftBehind(env.WorkDir) {
			t.Errorf("left behind: %s", left)
		}
	})
	return nil
}

// leftBehind lists the files and the processes of a story that its jobs should
// have taken away. A token in the home is meant to stay, and so is an empty runtime
// directory under TMPDIR, which all jobs of the user share.
func leftBehind(work string) (left []string) {
	token := filepath.Join(work, "home", ".config", "rdzv", "token")
	runtime := filepath.Join(work, "tmp", fmt.Sprintf("rdzv-%d", os.Geteuid()))
	for _, dir := range []string{"home", "tmp", "run"} {
		filepath.Walk(filepath.Join(work, dir), func(path string, info os.FileInfo, err error) error {
			if err != nil || !strings.HasPrefix(token, path) && path != filepath.Join(work, dir) && path != runtime {
				left = append(left, path)
			}
			return nil
		})
	}
	return append(left, processesOf(work)...)
}

// processesOf finds processes by the WORK in their environment.
func processesOf(work string) (found []string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		environ, _ := os.ReadFile(path) // it may have gone, or be another user's
		if slices.Contains(strings.Split(string(environ), "\x00"), "WORK="+work) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			found = append(found, fmt.Sprintf("process %s: %q", filepath.Base(filepath.Dir(path)), line))
		}
	}
	return found
}

// condition knows [root].
func condition(name string) (bool, error) {
	if name == "root" {
		return os.Geteuid() == 0, nil
	}
	return false, fmt.Errorf("no such condition %q", name)
}

// exits CODE PROGRAM [ARG]... runs a program that must end with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program [args...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}

// under RECORD puts the story below a launcher: into the environment that it gave
// to a rank, as recorded in envmap/testdata.
func under(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: under record")
	}
	for _, kv := range recorded(ts, args[0]) {
		ts.Setenv(kv[0], kv[1])
	}
}

// recorded are the variables of a record but those that every process has.
func recorded(ts *testscript.TestScript, name string) (env [][2]string) {
	text, err := os.ReadFile(filepath.Join("..", "..", "envmap", "testdata", name+".env"))
	ts.Check(err)
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "=")
		if ok && !slices.Contains([]string{"PATH", "HOME", "TMPDIR", "PWD", "XDG_RUNTIME_DIR", "LD_LIBRARY_PATH"}, name) {
			env = append(env, [2]string{name, value})
		}
	}
	return env
}

// await FILE... waits until the files are there, as a program's sign that it runs.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: await file...")
	}
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for _, name := range args {
		for {
			if _, err := os.Stat(ts.MkAbs(name)); err == nil {
				break
			}
			select {
			case <-again.C:
			case <-deadline.C:
				ts.Fatalf("%s has not come", name)
			}
		}
	}
}

// lines stdout|stderr N says how many lines the last program has written.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines stdout|stderr n")
	}
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%d lines on %s, not %s", n, args[0], args[1])
	}
}

// port NAME sets NAME to a port of 127.0.0.1 on which nobody listens.
func port(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: port name")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], portOf(l))
	ts.Check(l.Close())
}

func portOf(l net.Listener) string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }

// serve http|ssh|mute NAME starts a service that is no store of ours and sets NAME
// to its port.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: serve http|ssh|mute name")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	var wg sync.WaitGroup
	ts.Defer(func() { l.Close(); wg.Wait() })
	ts.Setenv(args[1], portOf(l))
	switch args[0] {
	case "http":
		wg.Go(func() { http.Serve(l, http.NotFoundHandler()) })
	case "ssh":
		wg.Go(func() { greet(l, "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n") })
	case "mute":
		wg.Go(func() { greet(l, "") })
	default:
		ts.Fatalf("no service %q", args[0])
	}
}

// greet says the same to everybody, hears until they go, and answers nothing.
func greet(l net.Listener, greeting string) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() {
			defer conn.Close()
			io.WriteString(conn, greeting)
			io.Copy(io.Discard, conn)
		})
	}
}
