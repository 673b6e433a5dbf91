package tasks

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/wrap"
)

// TestSignals: the agent learns of the signals to a task, and whether its workers have them too; what
// it passes on they receive.
func TestSignals(t *testing.T) {
	for _, signalled := range []wrap.Signalled{wrap.Launched, wrap.Everyone} {
		p, task := oneTask(t)
		pass := make(chan wrap.Event)
		done, end := begin(t, task, wrap.Tree{
			Workers: []wrap.Worker{sh(t,
				`for s in TERM HUP USR1 USR2 CONT WINCH; do trap "echo got-$s" $s; done
				echo ready; while :; do sleep 0.02; done`)},
			Signals: pass, Signalled: signalled,
		})
		p.stdout.want("ready")
		shared := signalled == wrap.Everyone
		for _, s := range []syscall.Signal{
			syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGTERM, syscall.SIGHUP,
		} {
			p.signal(s)
			e := await(t, s.String(), task.Signals().C)
			if e.Signal != s || e.Shared != shared || time.Since(e.At) > limit {
				t.Errorf("got %+v, want %v", e, s)
			}
		}
		pass <- wrap.Event{Signal: syscall.SIGUSR2, At: time.Now()}
		p.stdout.want("got-USR2")
		for _, name := range []string{"TERM", "HUP", "USR1", "CONT", "WINCH"} {
			if strings.Contains(p.stdout.String(), "got-"+name) {
				t.Errorf("the worker has received SIG%s", name)
			}
		}
		end(nil)
		await(t, "Run", done)
	}
}

// TestSignalsWithoutWorkers: they reach the agent.
func TestSignalsWithoutWorkers(t *testing.T) {
	p, task := oneTask(t)
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGINT} {
		p.signal(s)
		if e := await(t, s.String(), task.Signals().C); e.Signal != s || e.Shared {
			t.Errorf("got %+v, want %v", e, s)
		}
	}
	task.Exit(0, 0)
	if code := p.code(); code != 0 {
		t.Errorf("the task exits with %d", code)
	}
}

// TestQuestions: files of a worker, and what is left.
func TestQuestions(t *testing.T) {
	p, task := oneTask(t)
	pids := make(chan int, 1)
	done, end := begin(t, task, wrap.Tree{
		Workers: []wrap.Worker{sh(t, "echo ready; sleep 1000; :")},
		Started: func(_, pid int) { pids <- pid },
	})
	p.stdout.want("ready")
	pid := await(t, "Started", pids)
	text, err := task.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || !strings.Contains(string(text), marker(t)) {
		t.Errorf("ReadFile = %q, %v", text, err)
	}
	if _, err := task.ReadFile("/proc/" + strconv.Itoa(pid) + "/missing"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("ReadFile of a missing file: %v", err)
	}
	for _, name := range []string{"/etc/passwd", "/proc/../etc/passwd", "", "/proc"} {
		if text, err := task.ReadFile(name); err == nil {
			t.Errorf("ReadFile(%q) = %q", name, text)
		}
	}
	left := task.Remaining()
	if len(left) != 1 || left[0].PID != pid {
		t.Errorf("Remaining = %+v, want pid %d", left, pid)
	}
	end(nil)
	await(t, "Run", done)
}
