package integration

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/proctest"
)

// A terminal is a real one, of the kernel's, with an interactive shell in it.
type terminal struct {
	*place
	master *os.File
	cmd    *exec.Cmd

	mu     sync.Mutex
	screen string // all that has appeared
	from   int    // what has been looked at
}

// newTerminal starts bash in a terminal, in the place.
func newTerminal(t *testing.T) *terminal {
	t.Helper()
	term := &terminal{place: newPlace(t)}
	var slave *os.File
	term.master, slave = proctest.OpenTerminal(t)
	term.cmd = exec.Command("bash", "--norc", "--noediting", "-i")
	term.cmd.Env, term.cmd.Dir = append(term.env, "PS1=ready> ", "TERM=dumb", "HISTFILE="), term.root
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	done := make(chan struct{})
	go func() { defer close(done); term.read() }()
	t.Cleanup(func() { // before the place is left
		_ = term.cmd.Process.Kill()
		_ = term.cmd.Wait()
		term.master.Close()
		<-done
		if t.Failed() {
			t.Logf("on the terminal:\n%s", term.screen)
		}
	})
	term.sees("ready> ")
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

// types presses keys; \x03 is Ctrl-C.
func (term *terminal) types(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// sees waits for a text to appear behind what it saw before.
func (term *terminal) sees(text string) {
	term.t.Helper()
	if !eventually(waitLimit, func() bool {
		term.mu.Lock()
		defer term.mu.Unlock()
		at := strings.Index(term.screen[term.from:], text)
		if at >= 0 {
			term.from += at + len(text)
		}
		return at >= 0
	}) {
		term.t.Fatalf("%q has not appeared", text)
	}
}

// answers presses keys and waits for texts, one after another.
func (term *terminal) answers(keys string, texts ...string) {
	term.t.Helper()
	term.types(keys)
	for _, text := range texts {
		term.sees(text)
	}
}

// runs types the command of a job without a launcher, and waits for its workers.
func (term *terminal) runs(n int, prog []string) []record {
	term.t.Helper()
	dir := term.dir("job")
	term.types(strings.Join(direct(term.place, n, nil, append(prog, dir)), " ") + "; echo code=$?\n")
	return records(term.t, dir, n)
}

func (term *terminal) signalsOf(rank int) string {
	term.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("%s/job/%d.signals", term.root, rank))
	if err != nil {
		term.t.Error(err)
	}
	return string(text)
}

// Ctrl-C and Ctrl-\ reach each worker once, from the terminal itself.
func TestTerminalKeys(t *testing.T) {
	for key, want := range map[string]string{"\x03": "SIGINT", "\x1c": "SIGQUIT"} {
		t.Run(want, func(t *testing.T) {
			term := newTerminal(t)
			term.runs(2, actor("count"))
			term.types(key)
			term.sees("code=0") // as after a checkpoint
			for rank := range 2 {
				if got := term.signalsOf(rank); got != want {
					t.Errorf("rank %d got %q, want %q", rank, got, want)
				}
			}
		})
	}
}

// Ctrl-Z stops the job, as its shell sees; fg goes on with it.
func TestTerminalStop(t *testing.T) {
	term := newTerminal(t)
	workers := term.runs(2, actor("count"))
	term.types("\x1a")
	term.sees("Stopped")
	for rank, w := range workers {
		if state := statOf(w.PID)[0]; state != "T" {
			t.Errorf("rank %d is in state %s", rank, state)
		}
	}
	term.sees("ready> ")
	term.types("fg\n")
	for rank, w := range workers {
		if !eventually(waitLimit, func() bool { return statOf(w.PID)[0] != "T" }) {
			t.Errorf("rank %d does not go on", rank)
		}
	}
	term.types("\x03")
	term.sees("ready> ") // bash forgets the rest of a line whose first command was stopped
	term.types("echo code=$?\n")
	term.sees("code=0")
	for rank := range 2 {
		if got := term.signalsOf(rank); got != "SIGINT" {
			t.Errorf("rank %d got %q, want SIGINT", rank, got)
		}
	}
}

// The second Ctrl-C kills what has not minded the first, long before the grace is over.
func TestTerminalSecondInterrupt(t *testing.T) {
	term := newTerminal(t)
	term.types(*rdzvBin + ` exec -- sh -c 'trap "" INT TERM; echo deaf; sleep 1000'; echo code=$?` + "\n")
	term.sees("deaf\r\n")
	term.types("\x03")
	term.sees("SIGINT")
	began := time.Now()
	term.types("\x03")
	term.sees("code=")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A debugger has the terminal, and so has a shell, whose own Ctrl-C ends nothing.
func TestTerminalPrograms(t *testing.T) {
	t.Run("pdb", func(t *testing.T) {
		term := newTerminal(t)
		term.types(*rdzvBin + " exec -- " + python + " -c 'import pdb; pdb.set_trace()'; echo code=$?\n")
		term.sees("(Pdb) ")
		term.answers("6*7\n", "42")
		term.answers("q\n", "BdbQuit", "code=1")
	})
	t.Run("bash", func(t *testing.T) {
		term := newTerminal(t)
		term.types(*rdzvBin + " exec -- env PS1='inner> ' bash --norc --noediting -i; echo code=$?\n")
		term.sees("inner> ")
		term.sees("inner> ")            // the first was the echo
		term.answers("\x03", "inner> ") // what is typed before is thrown away
		term.answers("sleep 1000\n", "sleep 1000")
		if !eventually(waitLimit, func() bool { return term.hasProcess("sleep") }) {
			t.Error("the inner shell runs nothing")
		}
		term.answers("\x03", "inner> ")
		term.answers("echo rank=$RANK $((6*7))\n", "rank=0 42")
		term.answers("exit 5\n", "code=5")
	})
	t.Run("sh", func(t *testing.T) {
		term := newTerminal(t)
		term.types(*rdzvBin + " exec -- sh; echo code=$?\n")
		term.answers("echo rank=$RANK $((6*7))\n", "rank=0 42")
		term.answers("exit 6\n", "code=6")
	})
	t.Run("tty", func(t *testing.T) {
		term := newTerminal(t)
		term.types(*rdzvBin + ` exec -- sh -c 'test -t 0 && test -t 1 && test -t 2 && tty'; echo code=$?` + "\n")
		term.sees("/dev/pts/")
		term.sees("code=0")
	})
}

func (p *place) hasProcess(name string) bool {
	for _, pid := range p.alive() {
		if nameOf(pid) == name {
			return true
		}
	}
	return false
}
