package procfs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"testing"
	"testing/fstest"
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
	for name, list := range map[string]func(fs.FS, int) ([]int, error){
		"task/*/children": Children, "parents of all processes": childrenByParent,
	} {
		got, err := list(System, os.Getpid())
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
}

func TestChildrenFiles(t *testing.T) {
	stat := func(pid, parent string) *fstest.MapFile {
		rest := " 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 98765"
		return &fstest.MapFile{Data: []byte(pid + " (x) S " + parent + rest)}
	}
	for _, row := range []struct {
		name string
		proc fstest.MapFS
		want []int
		err  error
	}{
		{"two threads", fstest.MapFS{
			"7/task/7/children":  {Data: []byte("8 9 ")},
			"7/task/10/children": {Data: []byte("11 ")},
		}, []int{11, 8, 9}, nil},
		{"no children files", fstest.MapFS{
			"7/task/7/stat": {}, "7/stat": stat("7", "1"), "8/stat": stat("8", "7"),
			"9/stat": stat("9", "8"),
		}, []int{8}, nil},
		{"no such process", fstest.MapFS{"7/stat": stat("7", "1")}, nil, fs.ErrNotExist},
	} {
		got, err := Children(row.proc, 7)
		if !slices.Equal(got, row.want) || !errors.Is(err, row.err) {
			t.Errorf("%s: got %v, %v, want %v, %v", row.name, got, err, row.want, row.err)
		}
	}
}

func TestFindDescendant(t *testing.T) {
	proc := fstest.MapFS{
		"7/task/7/children": {Data: []byte("8 9 ")}, "8/task/8/children": {Data: []byte("10 ")},
		"9/task/9/children": {}, "10/task/10/children": {Data: []byte("11 ")}, // which has ended
	}
	for _, row := range []struct {
		is   []int
		want int
	}{
		{[]int{7, 8, 9, 10}, 7}, {[]int{9, 10}, 10}, {[]int{9}, 9}, {[]int{11}, 11},
		{[]int{6, 12}, 0},
	} {
		got := FindDescendant(proc, 7, func(pid int) bool { return slices.Contains(row.is, pid) })
		if got != row.want {
			t.Errorf("of %v, FindDescendant returned %d, want %d", row.is, got, row.want)
		}
	}
}
