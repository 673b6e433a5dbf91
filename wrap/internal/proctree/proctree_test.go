package proctree

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

func TestChildren(t *testing.T) {
	var want []int
	for range 3 {
		cmd := exec.Command("cat")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer in.Close()
		want = append(want, cmd.Process.Pid)
	}
	got, err := Children()
	byScan, errScan := scan(os.Getpid())
	for _, list := range [][]int{got, byScan} {
		slices.Sort(list)
		if !slices.Equal(list, want) {
			t.Errorf("%v, want %v", list, want)
		}
	}
	if err != nil || errScan != nil {
		t.Error(err, errScan)
	}
	if s, err := Read(want[0]); err != nil || s.Name != "cat" || s.Parent != os.Getpid() || s.Start == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestNoSuchProcess(t *testing.T) {
	if _, err := Read(1 << 30); err != syscall.ESRCH {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	const rest = " S 41 42 42 0 -1 4194560 1 0 0 0 7 8 0 0 20 0 1 0 123456 99 3"
	for _, name := range []string{"cat", "a b", "tmux: server", "x) S 1 (", ")", ""} {
		s, err := parse([]byte("43 (" + name + ")" + rest))
		if err != nil || s != (Stat{name, 'S', 41, 123456}) {
			t.Errorf("%q: %+v, %v", name, s, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("43 (cat) S 41 42 42 0 -1 4194560 1 0 0 0 7 8 0 0 20 0 1 0 123456 99 3"))
	f.Add([]byte("43 ()"))
	f.Add([]byte(")("))
	f.Add([]byte(fmt.Sprint(os.Getpid())))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := parse(text); err == nil && (s.State == 0 && !slices.Contains(text, 0)) {
			t.Fatalf("%+v", s)
		}
	})
}
