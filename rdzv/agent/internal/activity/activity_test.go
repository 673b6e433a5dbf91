package activity

import (
	"context"
	"io"
	"os"
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

// child runs a shell that writes to its standard error and waits.
func child(t *testing.T, stderr *os.File) int {
	t.Helper()
	cmd := exec.Command("sh", "-c", "echo text >&2; echo; read line")
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestWatch(t *testing.T) {
	pid := child(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // an interval of almost nothing
	all := Watch(ctx, procfs.System, []int{pid, 1 << 30}, time.Hour)
	if all[0].State != 'S' && all[0].State != 'R' || all[1] != (Activity{}) {
		t.Errorf("got %q, and %+v for a process that does not exist", all[0].State, all[1])
	}
}

func TestLastOutput(t *testing.T) {
	began := time.Now().Add(-time.Second) // the kernel's time may be some milliseconds behind
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if last := LastOutput(child(t, w)); last.Before(began) || last.After(time.Now()) {
		t.Errorf("the last output was at %v, the process began at %v", last, began)
	}
	if last := LastOutput(1 << 30); !last.IsZero() {
		t.Errorf("a process that does not exist wrote at %v", last)
	}
}

// What is not a pipe, or is this process's own output too, tells nothing about one process.
func TestLastOutputUnknown(t *testing.T) {
	cmd := exec.Command("cat")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	if last := LastOutput(cmd.Process.Pid); !last.IsZero() {
		t.Errorf("the process wrote at %v to a file of this process", last)
	}
}
