package activity

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"rdzv/internal/procfs"
)

func TestBetween(t *testing.T) {
	process := func(state byte, start, cpu uint64) procfs.Process {
		return procfs.Process{State: state, Start: start, CPU: cpu}
	}
	for _, row := range []struct {
		name          string
		before, after tree
		want          Activity
	}{
		{"one core", tree{7: process('R', 1, 500)}, tree{7: process('R', 1, 700)}, Activity{'R', 1}},
		{"idle", tree{7: process('S', 1, 500)}, tree{7: process('S', 1, 500)}, Activity{'S', 0}},
		{"ended", tree{7: process('S', 1, 500)}, tree{}, Activity{}},
		{"children", tree{7: process('S', 1, 500), 8: process('R', 2, 100), 9: process('R', 3, 50)},
			tree{7: process('S', 1, 500), 8: process('R', 2, 150), 10: process('R', 4, 50)},
			Activity{'S', 0.5}},
		{"pid used again", tree{7: process('S', 1, 0), 8: process('R', 2, 900)},
			tree{7: process('S', 1, 0), 8: process('R', 4, 100)}, Activity{'S', 0.5}},
		{"child in the kernel", tree{7: process('S', 1, 0), 8: process('D', 2, 0)},
			tree{7: process('S', 1, 0), 8: process('D', 2, 0)}, Activity{'D', 0}},
		{"reads a file", tree{7: process('R', 1, 0)}, tree{7: process('D', 1, 0)}, Activity{'D', 0}},
		{"child reads a file", tree{7: process('S', 1, 0), 8: process('D', 2, 0)},
			tree{7: process('S', 1, 0), 8: process('R', 2, 0)}, Activity{'S', 0}},
	} {
		if got := between(row.before, row.after, 7, 2); got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

func TestWatch(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // an interval of almost nothing
	all := Watch(ctx, procfs.System, []int{cmd.Process.Pid, 1 << 30}, time.Hour)
	if all[0].State == 0 || all[1] != (Activity{}) {
		t.Errorf("got %+v, and %+v for a process that does not exist", all[0], all[1])
	}
}
