package wrap

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// rawTerminal is a terminal of which everything that appears on it is kept.
type rawTerminal struct {
	master, slave *os.File
	shown         chan []byte // delivers it when the terminal is closed
}

func newRawTerminal(t *testing.T) *rawTerminal {
	t.Helper()
	term := &rawTerminal{shown: make(chan []byte, 1)}
	term.master, term.slave = proctest.OpenTerminal(t)
	size := &unix.Winsize{Row: 30, Col: 100}
	if err := unix.IoctlSetWinsize(int(term.slave.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	go func() {
		var all bytes.Buffer
		_, _ = all.ReadFrom(term.master)
		term.shown <- all.Bytes()
	}()
	t.Cleanup(func() { term.slave.Close(); term.master.Close() })
	return term
}

// text closes the terminal, and returns what was shown.
func (term *rawTerminal) text() string {
	term.slave.Close()
	return strings.ReplaceAll(string(<-term.shown), "\r\n", "\n")
}

// flow stops the terminal, as Ctrl-S, or continues it, as Ctrl-Q.
func (term *rawTerminal) flow(t *testing.T, action int) {
	t.Helper()
	if err := unix.IoctlSetInt(int(term.slave.Fd()), unix.TCXONC, action); err != nil {
		t.Fatal(err)
	}
}

const stopFlow, continueFlow = 0, 1 // TCOOFF, TCOON

// describesStreams prints to a file what its streams are: the name and the size of a terminal.
const describesStreams = `exec 3>$OUT
for fd in 1 2; do
	what=no
	[ -t $fd ] && what="$(readlink /proc/$$/fd/$fd) $(stty size </proc/$$/fd/$fd)"
	echo "$fd $what" >&3
done
tty >&3`

// TestTerminals: which terminals a worker has, and what is known of its output.
func TestTerminals(t *testing.T) {
	nothingLeft(t)
	for _, c := range []struct {
		name                 string
		stdout, stderr       bool // are the terminal
		byOtherName, capture bool
		want                 string // own: the worker's, real: the terminal itself
		joined               bool
	}{
		{"both", true, true, false, true, "own own", true},
		{"both, opened apart", true, true, true, true, "own own", true},
		{"stderr alone", false, true, false, true, "no own", false},
		{"stdout alone", true, false, false, true, "real no", false},
		{"not captured", true, true, false, false, "real real", false},
		{"neither", false, false, false, true, "no no", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			term, dir := newRawTerminal(t), t.TempDir()
			file, _ := logFile(t)
			w := sh(t, describesStreams+`; echo out; echo err >&2; exit 3`)
			w.Env = append(w.Env, "OUT="+filepath.Join(dir, "streams"))
			last := new(LastOutput)
			w.Stdin, w.Stdout, w.Stderr, w.Capture = term.slave, file, file, c.capture
			w.LastOutput = last
			if c.stdout {
				w.Stdout = term.slave
			}
			if c.stderr {
				w.Stderr = term.slave
			}
			if c.byOtherName {
				again, err := os.OpenFile(term.slave.Name(), os.O_RDWR|syscall.O_NOCTTY, 0)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { again.Close() })
				w.Stderr = again
			}
			r := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})[0]
			real := fmt.Sprintf("%s 30 100", term.slave.Name())
			text, _ := os.ReadFile(filepath.Join(dir, "streams"))
			var got []string
			own := map[string]bool{}
			for _, line := range strings.Split(string(text), "\n")[:2] {
				switch _, what, _ := strings.Cut(line, " "); {
				case what == "no", what == "":
					got = append(got, "no")
				case what == real:
					got = append(got, "real")
				case strings.HasPrefix(what, "/dev/pts/") && strings.HasSuffix(what, " 30 100"):
					got, own[what] = append(got, "own"), true
				default:
					t.Errorf("a stream is %q", what)
				}
			}
			if strings.Join(got, " ") != c.want || len(own) > 1 {
				t.Errorf("streams %v %v, want %s", got, own, c.want)
			}
			if !strings.HasSuffix(string(text), term.slave.Name()+"\n") {
				t.Errorf("stdin is not the terminal: %q", text)
			}
			end := map[bool]string{false: "", true: "err\n"}[c.capture]
			if c.joined {
				end = "out\nerr\n"
			}
			if string(r.Stderr) != end || r.Joined != c.joined || r.Unread != nil {
				t.Errorf("end of output %q, joined %t, %v", r.Stderr, r.Joined, r.Unread)
			}
			if last.All() != c.joined {
				t.Errorf("all output is read: %t, want %t", last.All(), c.joined)
			}
			shown := ""
			if c.stdout {
				shown = "out\n"
			}
			if c.stderr {
				shown += "err\n"
			}
			if w.Stderr != file {
				w.Stderr.Close()
			}
			if text := term.text(); text != shown {
				t.Errorf("the terminal shows %q, want %q", text, shown)
			}
		})
	}
}

// TestTerminalOrder: what workers write to stdout and stderr by turns is shown in this order, and no
// line is broken.
func TestTerminalOrder(t *testing.T) {
	proctest.NeedProgram(t, "/usr/bin/python3")
	nothingLeft(t)
	const workers, lines = 4, 2000
	term := newRawTerminal(t)
	var tree Tree
	for i := range workers {
		w := sh(t, fmt.Sprintf(`exec /usr/bin/python3 -c '
import os
for i in range(%d):
    os.write(1 + i %% 2, b"%d %%d %%s\n" %% (i, b"x" * (i %% 90)))
'`, lines, i))
		w.Stdout, w.Stderr, w.Capture = term.slave, term.slave, true
		tree.Workers = append(tree.Workers, w)
	}
	mustRun(t, t.Context(), tree)
	next := make([]int, workers)
	for line := range strings.Lines(term.text()) {
		var rank, n int
		_, _ = fmt.Sscanf(line, "%d %d", &rank, &n)
		if want := fmt.Sprintf("%d %d %s\n", rank, n, strings.Repeat("x", n%90)); line != want ||
			n != next[rank] {
			t.Fatalf("line %q, want line %d of %d", line, next[rank], rank)
		}
		next[rank]++
	}
	for rank, n := range next {
		if n != lines {
			t.Errorf("%d lines of worker %d, want %d", n, rank, lines)
		}
	}
}

// TestTerminalBytes: what a worker writes is shown byte by byte, also much of it, parts of lines,
// prompts and progress bars.
func TestTerminalBytes(t *testing.T) {
	nothingLeft(t)
	for name, script := range map[string]string{
		"much":     `head -c 30000000 /dev/zero | tr '\0' 'x'`,
		"lines":    `seq 1000000; printf end`,
		"bar":      `for i in 1 2 3 4; do printf '\r%d%%' $i >&2; sleep 0.01; done; printf '\033[?25l'`,
		"nothing":  `true`,
		"returned": `printf 'long progress\rshort\r'; sleep 0.1; printf '\n'`,
	} {
		t.Run(name, func(t *testing.T) {
			want, err := exec.Command("/bin/sh", "-c", "exec 2>&1; "+script).Output()
			if err != nil {
				t.Fatal(err)
			}
			term := newRawTerminal(t)
			w := sh(t, script)
			w.Stdout, w.Stderr, w.Capture = term.slave, term.slave, true
			mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
			if got := term.text(); got != string(want) {
				t.Errorf("%d bytes are shown, or others, of %d: %.100q", len(got), len(want), got)
			}
		})
	}
}

// TestPromptIsShown: a part of a line is shown although nothing follows it.
func TestPromptIsShown(t *testing.T) {
	nothingLeft(t)
	for _, long := range []string{"", "seq 2000; "} {
		term, slave := openTerminal(t)
		in, keys, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		w := sh(t, long+`printf 'name? '; read name; echo "hello $name"`)
		w.Stdin, w.Stdout, w.Stderr, w.Capture = in, slave, slave, true
		last := new(LastOutput)
		w.LastOutput = last
		run := begin(t, Tree{Workers: []Worker{w}})
		eventually(t, "the prompt is known", func() bool { return last.Line() == "name?" })
		_, _ = keys.WriteString("you\n")
		term.await("name? hello you")
		run.one()
		in.Close()
		keys.Close()
	}
}

// TestStoppedTerminal: a user stops the terminal. What a worker had written is known when it ends,
// another one that writes elsewhere goes on, and so does the log of a third one. When the terminal
// is continued everything is shown, even after the end of the tree.
func TestStoppedTerminal(t *testing.T) {
	nothingLeft(t)
	term := newRawTerminal(t)
	term.flow(t, stopFlow)
	defer func() { _ = unix.IoctlSetInt(int(term.slave.Fd()), unix.TCXONC, continueFlow) }()
	log, logged := logFile(t)
	failing, elsewhere, logging := sh(t, `seq 1000; sleep 0.3; seq 1001 2000 >&2; exit 3`),
		sh(t, `seq 100000 >&2`), sh(t, `seq 3000 3500; sleep 0.2; seq 3501 4000`)
	for _, w := range []*Worker{&failing, &logging} {
		w.Stdout, w.Stderr, w.Capture = term.slave, term.slave, true
	}
	logging.Output = &Output{Log: log}
	elsewhere.Stderr, _ = logFile(t)
	elsewhere.Capture = true
	ended := make(chan string, 3)
	r := begin(t, Tree{
		Workers: []Worker{failing, elsewhere, logging},
		Ended: func(i int, r Result) {
			end := r.Stderr[bytes.LastIndexByte(bytes.TrimSpace(r.Stderr), '\n')+1:]
			ended <- fmt.Sprintf("%d %d %s", i, r.ExitCode(), bytes.TrimSpace(end))
		},
	})
	left := map[string]bool{"0 3 2000": true, "1 0 100000": true, "2 0 4000": true}
	for len(left) > 0 {
		got := <-ended
		if !left[got] {
			t.Fatalf("%q has ended, want one of %v", got, left)
		}
		delete(left, got)
	}
	eventually(t, "the log is complete", func() bool {
		return strings.HasSuffix(logged(), "\n3999\n4000\n")
	})
	time.Sleep(2 * showLimit)
	term.flow(t, continueFlow)
	if _, err := r.wait(); err != nil {
		t.Error(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(term.text()) {
		counts[strings.TrimSpace(line)]++
	}
	for n := 1; n <= 4000; n++ {
		if line := fmt.Sprint(n); counts[line] != 1 && (n <= 2000 || n >= 3000) {
			t.Fatalf("line %d is shown %d times", n, counts[line])
		}
	}
}

// showLimit is longer than a runner waits for a terminal that takes nothing.
const showLimit = 1200 * time.Millisecond

// TestStoppedTerminalBlocks: a worker that writes much to a terminal that is stopped waits for it, and
// can be stopped, and what it has written is shown later.
func TestStoppedTerminalBlocks(t *testing.T) {
	nothingLeft(t)
	term := newRawTerminal(t)
	term.flow(t, stopFlow)
	defer func() { _ = unix.IoctlSetInt(int(term.slave.Fd()), unix.TCXONC, continueFlow) }()
	name := filepath.Join(t.TempDir(), "n")
	w := worker(t, countingLines, argEnv+"="+name)
	w.Stdout, w.Stderr, w.Capture = term.slave, term.slave, true
	ended := make(chan Result, 1)
	run := begin(t, Tree{
		Workers: []Worker{w}, Grace: 10 * time.Millisecond,
		Ended: func(_ int, r Result) { ended <- r },
	})
	counted := func() string { text, _ := os.ReadFile(name); return string(text) }
	before := "?"
	eventually(t, "the worker waits", func() bool {
		now := counted()
		waits := now != "" && now == before
		before = now
		time.Sleep(100 * time.Millisecond)
		return waits
	})
	run.cancel(nil)
	<-ended
	term.flow(t, continueFlow)
	run.one()
	lines := strings.Count(term.text(), "\n")
	if n := 0; lines == 0 || func() bool { fmt.Sscan(counted(), &n); return lines < n }() {
		t.Errorf("%d lines are shown, of %d", lines, n)
	}
}

// TestStoppedTerminalKilled: an agent is killed while the terminal of its worker is stopped: nothing
// is left, not even the runner.
func TestStoppedTerminalKilled(t *testing.T) {
	nothingLeft(t)
	term, slave := openTerminal(t)
	cmd, _ := startAgent(t, 1, func(cmd *exec.Cmd) { cmd.Stderr = slave })
	_ = unix.IoctlSetInt(int(slave.Fd()), unix.TCXONC, stopFlow)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "nothing is left", func() bool { return len(marked(marker(t))) == 0 })
	_ = term
}

// TestNoPseudoterminal: where none can be had a worker keeps the terminal, and the result says why.
func TestNoPseudoterminal(t *testing.T) {
	if !proctest.Inside(t, "--user", "--map-root-user", "--mount") {
		return
	}
	term := newRawTerminal(t)
	dir := t.TempDir()
	const options = "newinstance,ptmxmode=0666,max=1"
	if err := unix.Mount("devpts", dir, "devpts", 0, options); err != nil {
		t.Skipf("cannot mount devpts: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount(filepath.Join(dir, "ptmx"), "/dev/ptmx", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	only, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer only.Close()
	w := sh(t, `test -t 1 && test -t 2 && echo shown >&2; exit 3`)
	w.Stdout, w.Stderr, w.Capture = term.slave, term.slave, true
	r := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})[0]
	if r.Code != 3 || r.Stderr != nil || r.Unread == nil ||
		r.Unread.Error() != "open /dev/ptmx: no space left on device" {
		t.Errorf("%+v, %v", r, r.Unread)
	}
	if text := term.text(); text != "shown\n" {
		t.Errorf("the terminal shows %q", text)
	}
}
