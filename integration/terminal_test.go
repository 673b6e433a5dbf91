package integration

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// A terminal is a pseudoterminal with an interactive shell.
type terminal struct {
	*place
	master *os.File
	cmd    *exec.Cmd

	mu     sync.Mutex
	screen string // everything that was written to it
	seen   int    // the part of screen that waitFor has searched
}

const shellPrompt = "ready> "

// bashLine sets PS1 itself: bash does not pass it on to programs that a script starts.
var bashLine = []string{"env", "PS1=" + shellPrompt, "bash", "--norc", "--noediting", "-i"}

// newTerminal starts bash in a terminal, in a place of its own.
func newTerminal(t *testing.T) *terminal {
	t.Helper()
	p := newPlace(t)
	return openTerminal(p, p.root, bashLine)
}

// openTerminal starts a command line, which is a shell's, in a terminal of the place.
func openTerminal(p *place, dir string, line []string) *terminal {
	t := p.t
	t.Helper()
	term := &terminal{place: p}
	var slave *os.File
	term.master, slave = proctest.OpenTerminal(t)
	term.cmd = exec.Command(line[0], line[1:]...)
	term.cmd.Env = append(term.env, "TERM=dumb", "HISTFILE=")
	term.cmd.Dir = dir
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	done := make(chan struct{})
	go func() { defer close(done); term.read() }()
	t.Cleanup(func() { // before the place is removed
		_ = term.cmd.Process.Kill()
		_ = term.cmd.Wait()
		term.master.Close()
		<-done
		if t.Failed() {
			t.Logf("the terminal shows:\n%s", term.screen)
		}
	})
	term.waitFor(shellPrompt)
	return term
}

func (term *terminal) read() {
	b := make([]byte, 4096)
	for {
		n, err := term.master.Read(b)
		term.mu.Lock()
		term.screen += string(b[:n])
		term.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// typeKeys types keys; \x03 is Ctrl-C.
func (term *terminal) typeKeys(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// waitFor waits until a text appears after the one before.
func (term *terminal) waitFor(text string) {
	term.t.Helper()
	if !eventually(waitLimit, func() bool {
		term.mu.Lock()
		defer term.mu.Unlock()
		at := strings.Index(term.screen[term.seen:], text)
		if at >= 0 {
			term.seen += at + len(text)
		}
		return at >= 0
	}) {
		term.t.Fatalf("the terminal does not show %q within %v", text, waitLimit)
	}
}

// typeAndWait types keys and waits for texts, one after another.
func (term *terminal) typeAndWait(keys string, texts ...string) {
	term.t.Helper()
	term.typeKeys(keys)
	for _, text := range texts {
		term.waitFor(text)
	}
}

// exec types the command line of a job with one worker.
func (term *terminal) exec(program string) {
	term.t.Helper()
	term.typeKeys(quoted([]string{*rdzvBin}) + " exec -- " + program + "; echo code=$?\n")
}

// runJob types the command line of a job of n workers that note their signals, and waits for them.
func (term *terminal) runJob(n int) []record {
	term.t.Helper()
	dir := term.dir("job")
	line := direct(term.place, n, nil, worker("signals", dir))
	term.typeKeys(quoted(line) + "; echo code=$?\n")
	return records(term.t, dir, n)
}

// Each worker receives the signal of Ctrl-C and Ctrl-\ once, from the terminal itself.
func TestTerminalKeys(t *testing.T) {
	for key, signal := range map[string]syscall.Signal{"\x03": intr, "\x1c": quit} {
		want := unix.SignalName(signal)
		t.Run(want, func(t *testing.T) {
			term := newTerminal(t)
			workers := term.runJob(2)
			term.typeKeys(key)
			term.waitFor(fmt.Sprint("code=", 128+int(signal))) // although they exit with 0
			for _, w := range workers {
				w.checkSignals(t, term.dir("job"), want)
			}
		})
	}
}

// Ctrl-Z stops the job, and the shell reports that; fg continues it.
func TestTerminalStop(t *testing.T) {
	term := newTerminal(t)
	workers := term.runJob(2)
	term.typeKeys("\x1a")
	term.waitFor("Stopped")
	for rank, w := range workers {
		if state := stateOf(w.PID); state != "T" {
			t.Errorf("rank %d is in state %s, want T (stopped)", rank, state)
		}
	}
	term.waitFor("ready> ")
	term.typeKeys("fg\n")
	for rank, w := range workers {
		if !eventually(waitLimit, func() bool { return stateOf(w.PID) != "T" }) {
			t.Errorf("rank %d does not continue", rank)
		}
	}
	term.typeKeys("\x03")
	term.waitFor("ready> ") // bash does not run the rest of the line
	term.typeKeys("echo code=$?\n")
	term.waitFor("code=130")
	for _, w := range workers {
		w.checkSignals(t, term.dir("job"), "SIGINT")
	}
}

// The second Ctrl-C kills workers that ignore the first, before the end of the grace period.
func TestTerminalSecondInterrupt(t *testing.T) {
	term := newTerminal(t)
	term.exec(`sh -c 'trap "" INT TERM; echo ignoring; sleep 1000'`)
	term.waitFor("ignoring\r\n")
	term.typeKeys("\x03")
	term.waitFor("press Ctrl-C again to kill them")
	start := time.Now()
	term.typeKeys("\x03")
	term.waitFor("code=")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the job ended %v after the second Ctrl-C, want at most 5s", took)
	}
}

// rdzv status --watch writes in place; after Ctrl-C the last table is still there.
func TestTerminalWatch(t *testing.T) {
	term := newTerminal(t)
	line := quoted([]string{*rdzvBin})
	term.typeAndWait(line+" exec --job watched -- sh -c 'echo runs; exec sleep 1000' &\n", "runs\r\n")
	term.typeKeys("TERM=xterm " + line + " status --watch --job watched; echo code=$?\n")
	term.waitFor("\x1b[Hjob watched: 1 rank on 1 node")
	term.waitFor("\x1b[J\x1b[Hjob watched: 1 rank on 1 node") // again
	term.typeKeys("\x03")
	term.waitFor("ready> ") // bash does not run the rest of the line
	term.mu.Lock()
	if strings.Contains(term.screen, "no agent has answered") {
		t.Error("Ctrl-C replaces the table")
	}
	term.mu.Unlock()
	term.typeAndWait(line+" stop watched\n", `rdzv: stopping job "watched" on all nodes`, "ready> ")
	term.typeAndWait("wait\n", "ready> ")
}

// A worker that is a debugger or a shell can use the terminal. Ctrl-C in that shell does not end
// the job.
func TestTerminalPrograms(t *testing.T) {
	t.Run("pdb", func(t *testing.T) {
		term := newTerminal(t)
		term.exec(python + " -c 'import pdb; pdb.set_trace()'")
		term.waitFor("(Pdb) ")
		term.typeAndWait("6*7\n", "42")
		term.typeAndWait("q\n", "BdbQuit", "code=1")
	})
	t.Run("bash", func(t *testing.T) {
		term := newTerminal(t)
		term.exec("env PS1='inner> ' bash --norc --noediting -i")
		term.waitFor("inner> ")
		term.waitFor("inner> ")             // the first was the echo of the command
		term.typeAndWait("\x03", "inner> ") // discards what was typed before
		term.typeAndWait("sleep 1000\n", "sleep 1000")
		if !eventually(waitLimit, func() bool { return term.hasProcess("sleep") }) {
			t.Error("the inner shell does not run sleep")
		}
		term.typeAndWait("\x03", "inner> ")
		term.typeAndWait("echo rank=$RANK $((6*7))\n", "rank=0 42")
		term.typeAndWait("exit 5\n", "code=5")
	})
	t.Run("sh", func(t *testing.T) {
		term := newTerminal(t)
		term.exec("sh")
		term.typeAndWait("echo rank=$RANK $((6*7))\n", "rank=0 42")
		term.typeAndWait("exit 6\n", "code=6")
	})
	t.Run("tty", func(t *testing.T) {
		term := newTerminal(t)
		term.exec("sh -c 'test -t 0 && test -t 1 && test -t 2 && tty'")
		term.waitFor("/dev/pts/")
		term.waitFor("code=0")
	})
}

func (p *place) hasProcess(name string) bool {
	return slices.ContainsFunc(p.marked(), func(pid int) bool { return nameOf(pid) == name })
}
