package wrap

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// terminal is a pseudo terminal: what is typed into it and the lines that appear on it.
type terminal struct {
	t      *testing.T
	master *os.File
	lineReader
}

func (term terminal) typed(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// openTerminal returns a terminal and its other end.
func openTerminal(t *testing.T) (terminal, *os.File) {
	t.Helper()
	master, slave := proctest.OpenTerminal(t)
	l := lineReader{t, make(chan string, 10000)}
	done := make(chan struct{})
	go func() { defer close(done); l.read(master) }()
	t.Cleanup(func() { slave.Close(); master.Close(); <-done })
	return terminal{t, master, l}, slave
}

// shell is a shell with job control: it runs the role of its argument in a foreground process group; when that stops, it
// says so, takes the terminal back, waits for SIGUSR1, and puts it into the foreground again.
var shell = role("shell", func() {
	signal.Ignore(syscall.SIGTTOU) // as shells do, to be able to give the terminal away
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGUSR1)
	job, err := syscall.ForkExec("/proc/self/exe", []string{"job"}, &syscall.ProcAttr{
		Env:   []string{roleEnv + "=" + listener, markerEnv + "=" + os.Getenv(markerEnv), argEnv + "=" + os.Getenv(argEnv)},
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Foreground: os.Getenv(backEnv) == "", Setpgid: true, Ctty: 0},
	})
	if err != nil {
		fmt.Println("shell:", err)
		return
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(job, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp())
		if err != nil || !status.Stopped() {
			fmt.Println("shell: job ended", status.ExitStatus())
			return
		}
		fmt.Println("shell: job stopped")
		<-again
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, job)
		syscall.Kill(-job, syscall.SIGCONT)
	}
})

// backEnv makes the shell start its job in the background.
const backEnv = "WRAP_TEST_BACKGROUND"

// startShell runs the listener with a worker in the foreground of a terminal.
func startShell(t *testing.T, script string, env ...string) (terminal, *exec.Cmd) {
	t.Helper()
	term, slave := openTerminal(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleEnv + "=" + shell, markerEnv + "=" + marker(t), argEnv + "=" + script}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	startMarked(t, cmd)
	return term, cmd
}

// TestKeys presses the keys that signal the foreground: worker and agent get each once.
func TestKeys(t *testing.T) {
	nothingLeft(t)
	term, _ := startShell(t, "")
	term.want("ready")
	for _, key := range []struct {
		keys   string
		signal syscall.Signal
	}{{"\x03", syscall.SIGINT}, {"\x1c", syscall.SIGQUIT}, {"\x03", syscall.SIGINT}} {
		term.typed(key.keys)
		event, name := fmt.Sprintf("agent: %d shared=true", int(key.signal)), key.signal.String()
		for left := map[string]bool{event: true, name: true}; len(left) > 0; {
			line := strings.TrimPrefix(strings.TrimPrefix(term.next(), "^C"), "^\\") // what the terminal echoes
			if !left[line] {
				t.Fatalf("%q, want %v", line, left)
			}
			delete(left, line)
		}
	}
}

// TestResize: the kernel tells the foreground of a new size.
func TestResize(t *testing.T) {
	nothingLeft(t)
	term, _ := startShell(t, "")
	term.want("ready")
	raw, _ := term.master.SyscallConn()
	raw.Control(func(fd uintptr) {
		unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 111})
	})
	term.inAnyOrder("agent: 28 shared=true", "window-changed")
}

// TestCtrlZ stops and continues a worker that knows nothing of it.
func TestCtrlZ(t *testing.T) {
	nothingLeft(t)
	term, sh := startShell(t, `echo ready; read line; echo "got $line"; exit 5`)
	term.await("ready")
	for range 3 {
		term.typed("\x1a")
		term.await("^Zshell: job stopped")
		for _, p := range marked(marker(t)) {
			if p.PID != sh.Process.Pid {
				eventually(t, p.Name+" has stopped", func() bool { s, _ := readState(p.PID); return s == 'T' })
			}
		}
		syscall.Kill(sh.Process.Pid, syscall.SIGUSR1)
		term.await("agent: 18 shared=true")
	}
	term.typed("hello\n")
	term.await("got hello")
	term.await("ended 5 outside 0 <nil>")
	term.await("shell: job ended 0")
}

// TestBackgroundRead: a job that reads the terminal from the background stops as a whole, and reads on in the foreground.
func TestBackgroundRead(t *testing.T) {
	nothingLeft(t)
	term, sh := startShell(t, `echo ready; read line; echo "got $line"; exit 5`, backEnv+"=1")
	term.await("ready")
	term.await("shell: job stopped")
	syscall.Kill(sh.Process.Pid, syscall.SIGUSR1)
	term.await("agent: 18 shared=true")
	term.typed("hello\n")
	term.await("got hello")
	term.await("ended 5 outside 0 <nil>")
}

// tidies stops itself only some time after it was told to. (A Go program could not: once it has caught SIGTSTP, that
// never takes its default course again.)
const tidies = `exec /usr/bin/python3 -c '
import os, signal, time
def stop(*_):
    os.write(1, b"tidying\n")
    time.sleep(0.1)
    os.write(1, b"tidy\n")
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
signal.signal(signal.SIGTSTP, stop)
os.write(1, b"ready\n")
while True:
    signal.pause()
'`

// TestLateStop: a worker that first puts things in order is not overtaken by the agent.
func TestLateStop(t *testing.T) {
	nothingLeft(t)
	term, sh := startShell(t, tidies)
	term.await("ready")
	term.typed("\x1a")
	for _, line := range []string{"tidying", "tidy", "shell: job stopped"} {
		for got := ""; got != line; {
			if got = strings.TrimPrefix(term.next(), "^Z"); got == "shell: job stopped" && line != got {
				t.Fatalf("stopped before %q", line)
			}
		}
	}
	syscall.Kill(sh.Process.Pid, syscall.SIGUSR1)
}

// TestShellAsProgram: a worker that does job control itself.
func TestShellAsProgram(t *testing.T) {
	nothingLeft(t)
	term, _ := startShell(t, `PS1=; export PS1; echo ready; exec bash --norc --noprofile --noediting -i`)
	term.await("ready")
	term.typed("sleep 1000\n")
	eventually(t, "sleep runs", func() bool {
		for _, p := range marked(marker(t)) {
			if p.Name == "sleep" {
				return true
			}
		}
		return false
	})
	term.typed("\x1a")
	for !strings.HasPrefix(term.next(), "[1]+  Stopped") {
	}
	term.typed("kill %1; fg\n")
	term.typed("echo a''live; exit 6\n")
	term.await("alive")
	term.await("ended 6 outside 0 <nil>")
}
