package runner

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/wrap"
)

// TestSignals: the signals of a task are for its workers, or for the agent.
func TestSignals(t *testing.T) {
	p, task := oneTask(t)
	done, end := begin(t, task, wrap.Tree{Workers: []wrap.Worker{sh(t,
		`for s in TERM HUP USR1 USR2 CONT WINCH; do trap "echo got-$s" $s; done
		echo ready; while :; do sleep 0.02; done`)}})
	p.stdout.want("ready")
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH} {
		p.signal(s)
	}
	for _, name := range []string{"USR1", "USR2", "CONT", "WINCH"} {
		p.stdout.want("got-" + name)
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		p.signal(s)
		e := await(t, s.String(), task.Signals())
		if e.Signal != s || e.Shared || time.Since(e.At) > limit {
			t.Errorf("got %+v, want %v", e, s)
		}
	}
	for _, name := range []string{"TERM", "HUP"} {
		if strings.Contains(p.stdout.String(), "got-"+name) {
			t.Errorf("the worker has received SIG%s", name)
		}
	}
	end(nil)
	await(t, "Run", done)
}

// TestSignalsWithoutWorkers: those of the agent reach it, the others do nothing.
func TestSignalsWithoutWorkers(t *testing.T) {
	p, task := oneTask(t)
	p.signal(syscall.SIGUSR1)
	p.signal(syscall.SIGINT)
	if e := await(t, "SIGINT", task.Signals()); e.Signal != syscall.SIGINT {
		t.Errorf("got %+v, want SIGINT", e)
	}
	task.Exit(0, 0)
	if code := p.code(); code != 0 {
		t.Errorf("the task exits with %d", code)
	}
}

// TestDelivered: workers that have received a signal as their runner has do not receive SIGTERM,
// whether the agent learns of the signal before or after they do.
func TestDelivered(t *testing.T) {
	for name, c := range map[string]struct {
		orderFirst, signal bool
		delivered          syscall.Signal
		count              int // of SIGTERM to the worker
	}{
		"signal, then order":   {false, true, syscall.SIGTERM, 1},
		"order, then signal":   {true, true, syscall.SIGTERM, 1},
		"no signal":            {true, false, syscall.SIGTERM, 1},
		"signal, not of agent": {false, true, 0, 1},
		"neither":              {true, false, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, task := oneTask(t)
			done, end := begin(t, task, wrap.Tree{
				Workers: []wrap.Worker{sh(t,
					`trap 'echo got-TERM' TERM; echo "ready $$"; while :; do sleep 0.02; done`)},
				Signalled: wrap.Everyone, Grace: time.Hour,
			})
			p.stdout.want("ready")
			if c.orderFirst {
				end(&wrap.Stop{Delivered: c.delivered, At: time.Now()})
				time.Sleep(100 * time.Millisecond)
			}
			if c.signal {
				holder := holderOf(t, p)
				for _, pid := range append(tree(t, p), holder, p.Process.Pid) {
					syscall.Kill(pid, syscall.SIGTERM)
				}
				if e := await(t, "SIGTERM", task.Signals()); !e.Shared {
					t.Errorf("got %+v, want it to be shared", e)
				}
			}
			if !c.orderFirst {
				end(&wrap.Stop{Delivered: c.delivered, At: time.Now()})
			}
			p.stdout.want("got-TERM")
			time.Sleep(200 * time.Millisecond)
			if n := strings.Count(p.stdout.String(), "got-TERM"); n != c.count {
				t.Errorf("the worker has received SIGTERM %d times, want %d", n, c.count)
			}
			p.signal(syscall.SIGKILL)
			await(t, "Run", done)
		})
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
	text, err := task.ReadFile("/proc/" + itoa(pid) + "/environ")
	if err != nil || !strings.Contains(string(text), marker(t)) {
		t.Errorf("ReadFile = %q, %v", text, err)
	}
	if _, err := task.ReadFile("/proc/" + itoa(pid) + "/missing"); !os.IsNotExist(unwrapAll(err)) {
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
