package procfs

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

func TestParse(t *testing.T) {
	const rest = " S 42 4711 4711 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10\n"
	names := []string{"cat", "a b", "tmux: server", "a (strange) name", "x) S 1 (", ")", ""}
	for _, name := range names {
		p, err := parse([]byte("4711 (" + name + ")" + rest))
		want := Process{PID: 4711, Parent: 42, Name: name, State: 'S', Start: 98765, CPU: 11}
		if err != nil || p != want {
			t.Errorf("parse of name %q = %+v, %v", name, p, err)
		}
	}
	for _, bad := range []string{
		"", "1 (x", "1 (x) S 2", "x (x) " + strings.Repeat("1 ", 30),
		"1 x S" + strings.Repeat(" 1", 30), ")(",
	} {
		if p, err := parse([]byte(bad)); err == nil {
			t.Errorf("parse(%q) = %+v, want an error", bad, p)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("4711 (a (strange) name) S 42 4711 4711 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 98765"))
	f.Add([]byte("43 ()"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parse(text)
		if err == nil && p.State == 0 && !strings.Contains(string(text), "\x00") {
			t.Errorf("parse(%q) = %+v", text, p)
		}
	})
}

func TestThisProcess(t *testing.T) {
	proc, pid, parent := System, os.Getpid(), os.Getppid()
	p, err := Read(proc, pid)
	if err != nil || p.PID != pid || p.Parent != parent || p.Start == 0 {
		t.Errorf("Read = %+v, %v", p, err)
	}
	if list := Ancestors(proc, pid); len(list) == 0 || list[0].PID != parent {
		t.Errorf("Ancestors = %+v", list)
	}
	if args := Arguments(proc, pid); !slices.Equal(args, os.Args) {
		t.Errorf("Arguments = %q, want %q", args, os.Args)
	}
	if _, err := Read(proc, 1<<30); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("Read of a process that does not exist: %v", err)
	}
}

// A process that is its own ancestor cannot exist; if proc shows one, the list still ends.
func TestAncestorsEnd(t *testing.T) {
	proc := fstest.MapFS{"7/stat": {Data: []byte("7 (x) S 7" + strings.Repeat(" 0", 30))}}
	if list := Ancestors(proc, 7); len(list) != maxAncestors {
		t.Errorf("%d ancestors, want %d", len(list), maxAncestors)
	}
}

func TestIsStopped(t *testing.T) {
	const rest = " 42 4711 4711 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10\n"
	for state, want := range map[string]bool{"R": false, "T": true, "t": false, "Z": false} {
		proc := fstest.MapFS{"7/stat": {Data: []byte("7 (x) " + state + rest)}}
		if got := IsStopped(proc, 7); got != want {
			t.Errorf("in state %s it is stopped: %t", state, got)
		}
	}
	if IsStopped(fstest.MapFS{}, 7) {
		t.Error("a process that does not exist is stopped")
	}
}
