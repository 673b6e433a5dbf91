package procfs

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

func TestParse(t *testing.T) {
	const rest = " S 42 4711 4711 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10 18446744073709551615\n"
	for _, name := range []string{"cat", "a b", "tmux: server", "a (strange) name", "x) S 1 (", ")", ""} {
		p, err := parse([]byte("4711 (" + name + ")" + rest))
		if want := (Process{PID: 4711, Parent: 42, Name: name, State: 'S', Start: 98765}); err != nil || p != want {
			t.Errorf("%+v, %v", p, err)
		}
	}
	for _, bad := range []string{"", "1 (x", "1 (x) S 2", "x (x) " + strings.Repeat("1 ", 30), "1 x S" + strings.Repeat(" 1", 30), ")("} {
		if p, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q is fine: %+v", bad, p)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("4711 (a (strange) name) S 42 4711 4711 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10"))
	f.Add([]byte("43 ()"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := parse(text); err == nil && p.State == 0 && !strings.Contains(string(text), "\x00") {
			t.Errorf("%q: %+v", text, p)
		}
	})
}

func TestThisProcess(t *testing.T) {
	proc := System
	if p, err := Read(proc, os.Getpid()); err != nil || p.PID != os.Getpid() || p.Parent != os.Getppid() || p.Start == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if list := Ancestors(proc, os.Getpid()); len(list) == 0 || list[0].PID != os.Getppid() {
		t.Errorf("the parents of this process are %+v", list)
	}
	if args := Arguments(proc, os.Getpid()); strings.Join(args, "\n") != strings.Join(os.Args, "\n") {
		t.Errorf("the arguments of this process are %q", args)
	}
	if _, err := Read(proc, 1<<30); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("a process that there is not: %v", err)
	}
}

// A line of parents that never ends, as it cannot be, does not keep anybody.
func TestAncestorsEnd(t *testing.T) {
	proc := fstest.MapFS{"7/stat": {Data: []byte("7 (x) S 7" + strings.Repeat(" 0", 30))}}
	if list := Ancestors(proc, 7); len(list) != maxAncestors {
		t.Errorf("%d parents", len(list))
	}
}
