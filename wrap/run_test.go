package wrap

import (
	"fmt"
	"os/signal"
	"syscall"
	"testing"
)

var ignoringSignals = role("ignoring signals", func() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGABRT)
	fmt.Println("ready")
	pause()
})

func TestEveryExitCode(t *testing.T) {
	nothingLeft(t)
	var tree Tree
	for code := range 256 {
		w := sh(t, fmt.Sprintf("exit %d", code))
		tree.Workers = append(tree.Workers, w)
	}
	for code, r := range mustRun(t, t.Context(), tree) {
		if r.Code != code || r.Signal != 0 || r.ExitCode() != code || r.Stopped || r.PID == 0 {
			t.Errorf("worker that exits with %d: %+v", code, r)
		}
	}
}

func TestEverySignal(t *testing.T) {
	nothingLeft(t)
	var tree Tree
	var want []syscall.Signal
	for s := syscall.Signal(1); s <= 64; s++ {
		switch s {
		case syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH: // ignored
		case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU: // stop it
		case 32, 33: // used by the C library
		default:
			w := sh(t, fmt.Sprintf("ulimit -c 0; kill -%d $$; exit 0", int(s)))
			tree.Workers = append(tree.Workers, w)
			want = append(want, s)
		}
	}
	for i, r := range mustRun(t, t.Context(), tree) {
		if r.Signal != want[i] || r.ExitCode() != 128+int(want[i]) || r.Stopped {
			t.Errorf("worker killed by signal %d: %+v", int(want[i]), r)
		}
	}
}

func TestCapture(t *testing.T) {
	nothingLeft(t)
	out, text := output(t)
	w := sh(t, `echo one >&2; sleep 1000 & echo two >&2; exit 1`)
	w.Stderr, w.Capture = out, true
	results := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
	if got := string(results[0].Stderr); got != "one\ntwo\n" {
		t.Errorf("Result.Stderr = %q", got)
	}
	if got := text(); got != "one\ntwo\n" {
		t.Errorf("Stderr received %q", got)
	}
}
