package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/etcd/server/v3/embed"

	"rdzv/internal/etcdtest"
	"rdzv/internal/proctest"
)

// Each file of testdata is a testscript script about one command, named by its first word. It runs
// with a home, a temporary and a runtime directory of its own, in which it must leave no file, and
// must leave no process either.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		Setup:               setUp,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await-file":   awaitFile,
			"etcd":         startEtcd,
			"expect":       expect,
			"expect-error": expectError,
			"free-port":    freePort,
			"launcher-env": setLauncherEnv,
			"line-count":   lineCount,
			"run-page":     runPage,
			"serve":        serve,
		},
		Condition: condition,
	})
}

// setUp gives a script its directories, and checks at its end what it has left.
func setUp(env *testscript.Env) error {
	dirs := map[string]string{"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run"}
	for name, dir := range dirs {
		path := filepath.Join(env.WorkDir, dir)
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		env.Setenv(name, path)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	env.Setenv("ROOT", root)
	env.Setenv("GORACE", noRaceExitDelay)
	env.Setenv("USER_ID", strconv.Itoa(os.Geteuid()))
	env.Setenv("UNSHARE", unshareFlag())
	t, ok := env.T().(interface {
		Errorf(string, ...any)
		Failed() bool
	})
	if !ok {
		return fmt.Errorf("cannot report leftovers of a script: %T has no Errorf and Failed",
			env.T())
	}
	env.Defer(func() {
		if t.Failed() {
			return // testscript has not stopped its processes yet
		}
		for _, left := range leftBy(env.WorkDir) {
			t.Errorf("the script left %s, which rdzv should have removed or ended", left)
		}
	})
	return nil
}

// unshareFlag is the flag of unshare(1) for a script that mounts a file system.
func unshareFlag() string {
	if os.Geteuid() == 0 {
		return "-m"
	}
	return "-Urm"
}

// leftBy lists the files and the processes that a script left and should not have. A token in the
// home remains, and so does an empty runtime directory under TMPDIR, which all jobs of the user
// share.
func leftBy(work string) (left []string) {
	token := filepath.Join(work, "home", ".config", "rdzv", "token")
	runtime := filepath.Join(work, "tmp", fmt.Sprintf("rdzv-%d", os.Geteuid()))
	for _, dir := range []string{"home", "tmp", "run"} {
		top := filepath.Join(work, dir)
		filepath.Walk(top, func(path string, info os.FileInfo, err error) error {
			expected := strings.HasPrefix(token, path) || path == top || path == runtime
			if err != nil || !expected {
				left = append(left, "file "+path)
			}
			return nil
		})
	}
	return append(left, processesOf(work)...)
}

// processesOf lists the processes of a script, which have its WORK in their environment.
func processesOf(work string) (found []string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		environ, _ := os.ReadFile(path) // the process may have ended, or be another user's
		if slices.Contains(strings.Split(string(environ), "\x00"), "WORK="+work) {
			dir := filepath.Dir(path)
			command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			found = append(found, fmt.Sprintf("process %s: %q", filepath.Base(dir), command))
		}
	}
	return found
}

// condition evaluates [root], and [mount]: whether unshare $UNSHARE can be used.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "mount":
		return proctest.Unshare(unshareFlag()) == nil, nil
	}
	if path, is := strings.CutPrefix(name, "exists:"); is {
		_, err := os.Stat(path)
		return err == nil, nil
	}
	return false, fmt.Errorf("no such condition %q", name)
}

// checkUsage fails a script that uses a command wrongly: with "!" or too few arguments.
func checkUsage(ts *testscript.TestScript, neg bool, ok bool, usage string) {
	if neg || !ok {
		ts.Fatalf("usage: %s", usage)
	}
}

// expect runs a program, which must end with an exit code.
func expect(ts *testscript.TestScript, neg bool, args []string) {
	checkUsage(ts, neg, len(args) >= 2, "expect CODE PROGRAM [ARG]...")
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// expectError runs a program, which must end with an exit code and write a message to stderr.
func expectError(ts *testscript.TestScript, neg bool, args []string) {
	checkUsage(ts, neg, len(args) >= 3, "expect-error CODE REGEXP PROGRAM [ARG]...")
	message, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	expect(ts, false, slices.Concat(args[:1], args[2:]))
	if !message.MatchString(ts.ReadFile("stderr")) {
		ts.Fatalf("no match for %q on stderr", args[1])
	}
}

// setLauncherEnv gives the programs of a script the environment in which a launcher started a rank,
// as recorded in envmap/testdata.
func setLauncherEnv(ts *testscript.TestScript, neg bool, args []string) {
	checkUsage(ts, neg, len(args) == 1, "launcher-env RECORD")
	env, err := launcherEnv(args[0])
	ts.Check(err)
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		ts.Setenv(name, value)
	}
}

// awaitFile waits until files exist, with which a program in the background reports that it runs.
func awaitFile(ts *testscript.TestScript, neg bool, args []string) {
	checkUsage(ts, neg, len(args) > 0, "await-file FILE...")
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, name := range args {
		for {
			if _, err := os.Stat(ts.MkAbs(name)); err == nil {
				break
			}
			select {
			case <-tick.C:
			case <-deadline.C:
				ts.Fatalf("no file %s after 30s", name)
			}
		}
	}
}

// lineCount checks how many lines the last program wrote.
func lineCount(ts *testscript.TestScript, neg bool, args []string) {
	checkUsage(ts, neg, len(args) == 2, "line-count stdout|stderr N")
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%d lines on %s, want %s", n, args[0], args[1])
	}
}

// freePort sets a variable to a port of 127.0.0.1 at which nothing listens.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	checkUsage(ts, neg, len(args) == 1, "free-port NAME")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], portOf(l))
	ts.Check(l.Close())
}

func portOf(l net.Listener) string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }

// startEtcd starts an etcd, and sets a variable to its URL. With users it has those of etcdtest, and
// with TLS its CA is in ca.pem.
func startEtcd(ts *testscript.TestScript, neg bool, args []string) {
	checkUsage(ts, neg, len(args) == 2, "etcd open|users|tls NAME")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	scheme := "http"
	var change func(*embed.Config)
	if args[0] == "tls" {
		ca, err := etcdtest.NewAuthority(ts.MkAbs("."))
		ts.Check(err)
		cert, key, err := ca.Sign("server", time.Hour)
		ts.Check(err)
		scheme, change = "https", func(c *embed.Config) {
			c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = cert, key
		}
	}
	e, url, err := etcdtest.Start(ctx, ts.MkAbs("etcd-"+args[0]), scheme, change)
	ts.Check(err)
	ts.Defer(e.Close)
	if args[0] == "users" {
		ts.Check(etcdtest.AddUsers(ctx, url))
	}
	ts.Setenv(args[1], url)
}

// serve starts a service that is not a store, and sets a variable to its port.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	checkUsage(ts, neg, len(args) == 2, "serve http|ssh|silent NAME")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	var wg sync.WaitGroup
	ts.Defer(func() { l.Close(); wg.Wait() })
	ts.Setenv(args[1], portOf(l))
	switch args[0] {
	case "http":
		wg.Go(func() { http.Serve(l, http.NotFoundHandler()) })
	case "ssh":
		wg.Go(func() { serveGreeting(l, "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n") })
	case "silent":
		wg.Go(func() { serveGreeting(l, "") })
	default:
		ts.Fatalf("no service %q", args[0])
	}
}

// serveGreeting sends every client a greeting, and discards what the client sends.
func serveGreeting(l net.Listener, greeting string) {
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
