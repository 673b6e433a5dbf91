package wrap

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStopStacks(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	stderr, text := output(t)
	caught := worker(t, sleeps) // Go's runtime catches SIGABRT
	plain := sh(t, `echo ready; exec sleep 1000`)
	caught.Stdout, plain.Stdout = out, out
	caught.Stderr, caught.Capture = stderr, true
	begun := time.Now()
	r := begin(t, Tree{Workers: []Worker{caught, plain}, Grace: ample})
	l.want("ready", "ready")
	r.cancel(&Stop{Stacks: true, Err: errors.New("stragglers")})
	results, err := r.wait()
	if err != nil {
		t.Fatal(err)
	}
	if e := results[0]; e.Code != 2 || !e.Stopped || !strings.Contains(string(e.Stderr), "goroutine 1") {
		t.Errorf("%+v", e)
	}
	if e := results[1]; e.Signal != syscall.SIGTERM || !e.Stopped {
		t.Errorf("%+v", e)
	}
	if !strings.Contains(text(), "SIGABRT") {
		t.Error("no stack was printed")
	}
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestDeaf(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	stderr, text := output(t)
	tree := Tree{Workers: []Worker{worker(t, deaf), worker(t, counts), sh(t, `trap "" TERM; echo ready; exec sleep 1000`)}}
	for i := range tree.Workers {
		tree.Workers[i].Stdout = out
	}
	tree.Workers[0].Stderr = stderr
	now, ended := make(chan struct{}), make(chan int, len(tree.Workers))
	tree.Deaf, tree.Ended = now, func(i int, _ Result) { ended <- i }
	r := begin(t, tree)
	l.want("ready", "ready", "ready")
	close(now)
	if i := <-ended; i != 0 {
		t.Errorf("worker %d ended first", i)
	}
	r.kill()
	results, err := r.wait()
	if err != nil {
		t.Fatal(err)
	}
	if e := results[0]; e.Code != 2 || !e.Stopped {
		t.Errorf("%+v", e)
	}
	for _, e := range results[1:] {
		if e.Signal != syscall.SIGKILL {
			t.Errorf("%+v", e)
		}
	}
	if !strings.Contains(text(), "SIGABRT") {
		t.Error("no stack was printed")
	}
}

var deaf = role("deaf", func() {
	signal.Ignore(syscall.SIGTERM)
	os.Stdout.WriteString("ready\n")
	pause()
})

func TestStacksOfPython(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	stderr, text := output(t)
	dir := t.TempDir()
	w := sh(t, "")
	w.Path = "/usr/bin/python3"
	w.Args = []string{"python3", "-X", "faulthandler", "-c", `
import resource, signal, time
resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)) if resource.getrlimit(resource.RLIMIT_CORE)[1] < 0 else None
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def stuck_here():
    print("ready", flush=True)
    time.sleep(1000)
stuck_here()
`}
	w.Dir, w.Stdout, w.Stderr = dir, out, stderr
	r := begin(t, Tree{Workers: []Worker{w}, Grace: 50 * time.Millisecond})
	l.want("ready")
	r.cancel(nil)
	if e := r.one(); e.Signal != syscall.SIGABRT || !e.Stopped {
		t.Errorf("%+v", e)
	}
	if got := text(); !strings.Contains(got, "in stuck_here") {
		t.Errorf("no stack: %q", got)
	}
	if files, _ := filepath.Glob(dir + "/*"); len(files) > 0 {
		t.Errorf("it left %v", files)
	}
}

// TestNoCore: a worker that gets SIGABRT for its stacks cannot leave a core.
func TestNoCore(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	w := sh(t, `ulimit -c $(ulimit -Hc); trap "ulimit -c; exit 3" ABRT
		echo ready; while :; do sleep 0.01; done`)
	w.Stdout = out
	r := begin(t, Tree{Workers: []Worker{w}, Grace: ample})
	l.want("ready")
	r.cancel(&Stop{Stacks: true})
	if e := r.one(); e.Code != 3 || !e.Stopped {
		t.Errorf("%+v", e)
	}
	l.want("0")
}
