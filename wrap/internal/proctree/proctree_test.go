package proctree

import (
	"os"
	"os/exec"
	"slices"
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
}
