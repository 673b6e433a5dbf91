package wrap

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/proctest"
)

// ignoringTerm ignores SIGTERM; the Go runtime catches SIGABRT.
var ignoringTerm = role("ignoring SIGTERM", func() {
	signal.Ignore(syscall.SIGTERM)
	os.Stdout.WriteString("ready\n")
	pause()
})

// TestPythonStacks: at the end of the grace period Python prints its stacks, and leaves no core
// file.
func TestPythonStacks(t *testing.T) {
	proctest.NeedProgram(t, "/usr/bin/python3")
	nothingLeft(t)
	out, l := lines(t)
	stderr, text := output(t)
	dir := t.TempDir()
	w := sh(t, "")
	w.Path = "/usr/bin/python3"
	w.Args = []string{"python3", "-X", "faulthandler", "-c", `
import resource, signal, time
unlimited = resource.RLIM_INFINITY
if resource.getrlimit(resource.RLIMIT_CORE)[1] == unlimited:
    resource.setrlimit(resource.RLIMIT_CORE, (unlimited, unlimited))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def blocked_here():
    print("ready", flush=True)
    time.sleep(1000)
blocked_here()
`}
	w.Dir, w.Stdout, w.Stderr = dir, out, stderr
	r := begin(t, Tree{Workers: []Worker{w}, Grace: 50 * time.Millisecond})
	l.want("ready")
	r.cancel(nil)
	if e := r.one(); e.Signal != syscall.SIGABRT || !e.Stopped {
		t.Errorf("%+v, want SIGABRT and Stopped", e)
	}
	if got := text(); !strings.Contains(got, "in blocked_here") {
		t.Errorf("stderr is %q, want a stack with blocked_here", got)
	}
	if files, _ := filepath.Glob(dir + "/*"); len(files) > 0 {
		t.Errorf("files in the working directory: %v", files)
	}
}

// TestNoCore: a worker that receives SIGABRT has a core limit of less than 1 block.
func TestNoCore(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	w := sh(t, `ulimit -c $(ulimit -Hc); trap "ulimit -c; exit 3" ABRT
		echo ready; while :; do sleep 0.01; done`)
	w.Stdout = out
	r := begin(t, Tree{Workers: []Worker{w}, Grace: longGrace})
	l.want("ready")
	r.cancel(&Stop{DumpStacks: true})
	if e := r.one(); e.Code != 3 || !e.Stopped {
		t.Errorf("%+v, want Code 3 and Stopped", e)
	}
	l.want("0")
}

// TestDumping: workers whose grace period has passed, or for which Tree.DumpStacks is closed, print
// their stacks when Tree.Dumping, which names them, has returned. One that hangs delays that a
// little.
func TestDumping(t *testing.T) {
	atGrace := func(r *running, _ chan struct{}) { r.cancel(nil) }
	onRequest := func(r *running, dump chan struct{}) { close(dump) }
	for name, test := range map[string]struct {
		begin func(*running, chan struct{})
		hangs bool
	}{
		"at the end of the grace period": {begin: atGrace},
		"on request":                     {begin: onRequest},
		"Dumping hangs, grace period":    {begin: atGrace, hangs: true},
		"Dumping hangs, on request":      {begin: onRequest, hangs: true},
	} {
		for _, capture := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, capture %t", name, capture), func(t *testing.T) {
				checkDumping(t, test.begin, test.hangs, capture)
			})
		}
	}
}

func checkDumping(t *testing.T, dump func(*running, chan struct{}), hangs, capture bool) {
	nothingLeft(t)
	out, l := lines(t)
	stderr, errors := lines(t)
	tree := Tree{Grace: 50 * time.Millisecond}
	for _, role := range []string{ignoringTerm, handlingTerm, ignoringTerm} {
		w := worker(t, role)
		w.Stdout = out
		tree.Workers = append(tree.Workers, w)
	}
	tree.Workers[0].Stderr, tree.Workers[0].Capture = stderr, capture
	called, request := make(chan []Dump, len(tree.Workers)), make(chan struct{})
	tree.DumpStacks = request
	ctx, proceed := context.WithCancel(t.Context())
	tree.Dumping = func(d []Dump) {
		fmt.Fprintln(stderr, "announced")
		called <- d
		if hangs {
			<-ctx.Done()
		}
	}
	r := begin(t, tree)
	l.want("ready", "ready", "ready")
	dump(r, request)
	errors.want("announced")
	errors.await("SIGABRT: abort")
	proceed()
	r.cancel(nil)
	if _, err := r.wait(); err != nil {
		t.Fatal(err)
	}
	dumped := map[int]bool{}
	for close(called); len(called) > 0; {
		for _, d := range <-called {
			dumped[d.Worker] = d.IgnoresTerm
		}
	}
	if want := map[int]bool{0: true, 1: false, 2: true}; !maps.Equal(dumped, want) {
		t.Errorf("Dumping was called for %v, want %v", dumped, want)
	}
}

// handlingTerm catches SIGTERM and goes on; the Go runtime catches SIGABRT.
var handlingTerm = role("handling SIGTERM", func() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	os.Stdout.WriteString("ready\n")
	pause()
})
