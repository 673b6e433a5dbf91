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
	"rdzv/wrap/internal/parent"
)

// terminal is a pseudo terminal: its keyboard and the lines that appear on it.
type terminal struct {
	t      *testing.T
	master *os.File
	lineReader
}

func (term terminal) typeKeys(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// openTerminal returns a terminal and the file that programs use as their terminal.
func openTerminal(t *testing.T) (terminal, *os.File) {
	t.Helper()
	master, slave := proctest.OpenTerminal(t)
	l := lineReader{t, make(chan string, 10000)}
	done := make(chan struct{})
	go func() { defer close(done); l.read(master) }()
	t.Cleanup(func() { slave.Close(); master.Close(); <-done })
	return terminal{t, master, l}, slave
}

// jobShell is a shell with job control: it runs a listener in a foreground process group, or with
// backEnv in the background. When the job stops, it prints that, takes the terminal back, waits for
// SIGUSR1, and continues the job in the foreground.
var jobShell = role("shell", func() {
	signal.Ignore(syscall.SIGTTOU) // like all shells, to be able to use TIOCSPGRP
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGUSR1)
	job, err := syscall.ForkExec("/proc/self/exe", []string{"job"}, &syscall.ProcAttr{
		Env: []string{
			roleEnv + "=" + listener, markerEnv + "=" + os.Getenv(markerEnv),
			argEnv + "=" + os.Getenv(argEnv), othersEnv + "=" + os.Getenv(othersEnv),
			keepsEnv + "=" + os.Getenv(keepsEnv), "PATH=" + os.Getenv("PATH"),
		},
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

// startShell starts a shell in a terminal. The script is the worker of the listener.
func startShell(t *testing.T, script string, env ...string) (terminal, *exec.Cmd) {
	t.Helper()
	term, slave := openTerminal(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleEnv + "=" + jobShell, markerEnv + "=" + marker(t), argEnv + "=" + script}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	startMarked(t, cmd)
	return term, cmd
}

// onBoth runs a test with a worker that has a pseudoterminal and with one that keeps the terminal.
func onBoth(t *testing.T, test func(t *testing.T, env string)) {
	t.Helper()
	t.Run("captured", func(t *testing.T) { test(t, keepsEnv+"=") })
	t.Run("keeps the terminal", func(t *testing.T) { test(t, keepsEnv+"=1") })
}

// TestKeys presses keys that send a signal: agent and worker receive each one once.
func TestKeys(t *testing.T) { onBoth(t, testKeys) }

func testKeys(t *testing.T, env string) {
	nothingLeft(t)
	term, _ := startShell(t, "", env)
	term.want("ready")
	for _, key := range []struct {
		keys   string
		signal syscall.Signal
	}{{"\x03", syscall.SIGINT}, {"\x1c", syscall.SIGQUIT}, {"\x03", syscall.SIGINT}} {
		term.typeKeys(key.keys)
		event, name := fmt.Sprintf("agent: %d shared=true", int(key.signal)), key.signal.String()
		for left := map[string]bool{event: true, name: true}; len(left) > 0; {
			// The terminal echoes the keys.
			line := strings.TrimPrefix(strings.TrimPrefix(term.next(), "^C"), "^\\")
			if !left[line] {
				t.Fatalf("got line %q, want one of %v", line, left)
			}
			delete(left, line)
		}
	}
}

// resizeTo sets the size of the terminal.
func (term terminal) resizeTo(rows, columns uint16) {
	raw, _ := term.master.SyscallConn()
	_ = raw.Control(func(fd uintptr) {
		size := &unix.Winsize{Row: rows, Col: columns}
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size)
	})
}

// TestResize: agent and worker receive SIGWINCH when the size of the terminal changes.
func TestResize(t *testing.T) {
	nothingLeft(t)
	term, _ := startShell(t, "", keepsEnv+"=1")
	term.want("ready")
	term.resizeTo(33, 111)
	term.inAnyOrder("agent: 28 shared=true", "window-changed")
}

// printsSize prints the size of its terminal, and again when it learns that this has changed.
const printsSize = `/usr/bin/python3 -c '
import os, signal
def show(*_):
    size = os.get_terminal_size(1)
    os.write(2, b"size %d %d\n" % (size.lines, size.columns))
signal.signal(signal.SIGWINCH, show)
show()
while True:
    signal.pause()
'`

// TestResizeCaptured: a program that a worker runs, and that has a pseudoterminal, asks for the size
// when it receives SIGWINCH: the last answer is the new size.
func TestResizeCaptured(t *testing.T) {
	proctest.NeedProgram(t, "/usr/bin/python3")
	nothingLeft(t)
	term, _ := startShell(t, printsSize+"; true")
	term.await("size 0 0")
	for n := range uint16(8) {
		term.resizeTo(33+n, 111)
		term.await(fmt.Sprintf("size %d 111", 33+n))
	}
}

// TestCtrlZ stops and continues a worker that does not catch the signal.
func TestCtrlZ(t *testing.T) { onBoth(t, testCtrlZ) }

func testCtrlZ(t *testing.T, env string) {
	nothingLeft(t)
	term, sh := startShell(t, `echo ready; read line; echo "got $line"; exit 5`, env)
	term.await("ready")
	for range 3 {
		term.typeKeys("\x1a")
		term.await("^Zshell: job stopped")
		for _, p := range marked(marker(t)) {
			if p.PID != sh.Process.Pid && p.Name != parent.Name {
				eventually(t, p.Name+" is stopped", func() bool {
					s, _ := readState(p.PID)
					return s == 'T'
				})
			}
		}
		syscall.Kill(sh.Process.Pid, syscall.SIGUSR1)
		term.await("agent: 18 shared=true")
	}
	term.typeKeys("hello\n")
	term.await("got hello")
	term.await("ended 5 group signal 0 <nil>")
	term.await("shell: job ended 0")
}

// TestCtrlZWhileStarting: workers that start while the signal is sent are stopped too.
func TestCtrlZWhileStarting(t *testing.T) {
	nothingLeft(t)
	for range 5 {
		term, sh := startShell(t, "kill -TSTP 0; exec sleep 100", othersEnv+"=7")
		term.await("shell: job stopped")
		for _, p := range marked(marker(t)) {
			s, _ := readState(p.PID)
			session, _ := unix.Getsid(p.PID)
			job := session == sh.Process.Pid && p.PID != session && p.Name != parent.Name
			if job && s != 'T' {
				t.Errorf("process %d %s is in state %c", p.PID, p.Name, s)
			}
		}
		syscall.Kill(sh.Process.Pid, syscall.SIGUSR1)
		term.await("agent: 18 shared=true")
		term.typeKeys("\x03")
		term.await("shell: job ended 0")
	}
}

// TestBackgroundRead: a background job that reads from the terminal stops as a whole, and reads
// when it is continued in the foreground.
func TestBackgroundRead(t *testing.T) { onBoth(t, testBackgroundRead) }

func testBackgroundRead(t *testing.T, env string) {
	nothingLeft(t)
	term, sh := startShell(t, `echo ready; read line; echo "got $line"; exit 5`, backEnv+"=1", env)
	term.await("ready")
	term.await("shell: job stopped")
	syscall.Kill(sh.Process.Pid, syscall.SIGUSR1)
	term.await("agent: 18 shared=true")
	term.typeKeys("hello\n")
	term.await("got hello")
	term.await("ended 5 group signal 0 <nil>")
}

// stopsLate stops some time after it has received SIGTSTP. It is no Go program: once a Go program
// has caught SIGTSTP, the signal no longer has its default action.
const stopsLate = `exec /usr/bin/python3 -c '
import os, signal, time
def stop(*_):
    os.write(1, b"received\n")
    time.sleep(0.1)
    os.write(1, b"stopping\n")
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
signal.signal(signal.SIGTSTP, stop)
os.write(1, b"ready\n")
while True:
    signal.pause()
'`

// TestLateStop: the agent does not stop before a worker that stops late, and not before what that has
// written is shown.
func TestLateStop(t *testing.T) { onBoth(t, testLateStop) }

func testLateStop(t *testing.T, env string) {
	proctest.NeedProgram(t, "/usr/bin/python3")
	nothingLeft(t)
	term, sh := startShell(t, stopsLate, env)
	term.await("ready")
	term.typeKeys("\x1a")
	for _, line := range []string{"received", "stopping", "shell: job stopped"} {
		for got := ""; got != line; {
			got = strings.TrimPrefix(term.next(), "^Z")
			if got == "shell: job stopped" && line != got {
				t.Fatalf("the agent stopped before the worker printed %q", line)
			}
		}
	}
	syscall.Kill(sh.Process.Pid, syscall.SIGUSR1)
}

// TestTerminalMode: a worker that is killed while it reads keys does not leave the terminal without
// echo; what one sets that exits remains.
func TestTerminalMode(t *testing.T) {
	for end, echo := range map[string]uint32{"kill -KILL $$": unix.ECHO, "exit 3": 0} {
		t.Run(end, func(t *testing.T) {
			onBoth(t, func(t *testing.T, env string) {
				nothingLeft(t)
				term, _ := startShell(t, "stty -echo; "+end, env)
				term.await("shell: job ended 0")
				mode, err := unix.IoctlGetTermios(int(term.master.Fd()), unix.TCGETS)
				if err != nil || mode.Lflag&unix.ECHO != echo {
					t.Errorf("mode %+v, %v; want ECHO %#x", mode, err, echo)
				}
			})
		})
	}
}

// TestShellAsWorker: the worker is a shell with its own job control. It needs the terminal itself.
func TestShellAsWorker(t *testing.T) {
	nothingLeft(t)
	term, _ := startShell(t, `PS1=; export PS1; echo ready
		exec bash --norc --noprofile --noediting -i`, keepsEnv+"=1")
	term.await("ready")
	term.typeKeys("sleep 1000\n")
	eventually(t, "sleep is running", func() bool {
		for _, p := range marked(marker(t)) {
			if p.Name == "sleep" {
				return true
			}
		}
		return false
	})
	term.typeKeys("\x1a")
	for !strings.HasPrefix(term.next(), "[1]+  Stopped") {
	}
	term.typeKeys("kill %1; fg\n")
	term.typeKeys("echo still run''ning; exit 6\n")
	term.await("still running")
	term.await("ended 6 group signal 0 <nil>")
}
