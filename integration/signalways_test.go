package integration

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// What workers receive if a job is signalled in another way than with kill(1) or by a launcher,
// which signals_test.go tests, or by keys (terminal_test.go). A worker ends with 0 some time after
// it has received SIGTERM, as after a checkpoint.

// timeout(1) signals the agent, and at once its own process group, in which the agent is too.
func TestTimeoutCommand(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"TERM": "SIGTERM", "INT": "SIGTERM"} {
		p := newPlace(t)
		line := direct(p, 2, nil, worker("signals", p.dir("job")))
		job := p.start(append([]string{"timeout", "--signal", flag, "1000"}, line...)...)
		workers := records(t, p.dir("job"), 2)
		job.signal(syscall.SIGALRM) // its time is over
		job.checkCode(124)
		for _, w := range workers {
			w.checkSignals(t, p.dir("job"), want)
		}
	}
}

// kill %1 signals the process group of a job of the shell, which workers belong to, so that it may
// have the terminal: they may get the signal of the shell, and that of their agent.
func TestKillShellJob(t *testing.T) {
	t.Parallel()
	t.Run("background", func(t *testing.T) {
		term := newTerminal(t)
		dir := term.dir("job")
		line := quoted(direct(term.place, 2, nil, worker("signals", dir)))
		term.typeKeys(line + " &\n")
		workers := records(t, dir, 2)
		term.typeKeys("kill %1; wait %1; echo code=$?\n")
		term.waitFor("code=143")
		for _, w := range workers {
			w.checkSignals(t, dir, "SIGTERM", "SIGTERM SIGTERM")
		}
	})
	t.Run("stopped", func(t *testing.T) {
		term := newTerminal(t)
		workers := term.runJob(2)
		term.typeAndWait("\x1a", "Stopped", shellPrompt)
		term.typeKeys("kill %1; fg; echo code=$?\n")
		term.waitFor("code=143")
		for _, w := range workers {
			w.checkSignals(t, term.dir("job"), "SIGTERM", "SIGTERM SIGTERM")
		}
	})
}

// The unit's own process is the agent: systemd signals all processes of a unit that it stops, or the
// agent alone (KillMode=mixed). There is no systemd here: the test does what it does.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]bool{"control-group": true, "mixed": false} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			line := direct(p, 2, nil, worker("signals", p.dir("job")))
			start := []string{"sh", "-c", `SYSTEMD_EXEC_PID=$$ exec "$@"`, "sh"}
			job := p.start(append(start, line...)...)
			workers := records(t, p.dir("job"), 2)
			pids := []int{job.pid()}
			if all {
				pids = p.tree()
			}
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGTERM) // one may have ended
			}
			job.checkCode(143)
			for _, w := range workers {
				w.checkSignals(t, p.dir("job"), "SIGTERM")
			}
		})
	}
}

// Slurm signals all processes of a step, or of a batch script, whose time is over: workers receive
// what a program without rdzv does, which the test starts too.
func testSlurmTimeLimit(t *testing.T) {
	c := newCluster(t, 1)
	c.startSlurm(1, 1)
	p := c.newPlace(t)
	step := []string{"srun", "-O", "--overlap", "-n1"}
	plain := []string{"env", "RANK=0"}
	lines := map[string][]string{
		"step":         slices.Concat(step, rdzvExec(nil, worker("signals", p.dir("step")))),
		"plain step":   slices.Concat(step, plain, worker("signals", p.dir("plain step"))),
		"script":       rdzvExec(nil, worker("signals", p.dir("script"))),
		"plain script": append(plain, worker("signals", p.dir("plain script"))...),
	}
	script := "trap : TERM\n"
	for _, line := range lines {
		script += quoted(line) + " &\n"
	}
	batch := p.batch([]string{"-n1", "--time=1"}, "sh", "-c", script+"until wait; do :; done")
	received := map[string]string{}
	for name := range lines {
		w := records(t, p.dir(name), 1)[0]
		if !eventually(3*waitLimit, func() bool { return stateOf(w.PID) == "X" }) {
			t.Fatalf("%s has not ended; its script has printed\n%s", name, p.batchOutput())
		}
		text, _ := os.ReadFile(signalsFile(p.dir(name), "0"))
		received[name] = string(text)
	}
	batch.code()
	// Slurm signals a step twice, by itself and through srun, which the kernel may merge.
	want := map[string][]string{"step": {"SIGTERM SIGTERM", "SIGTERM"}, "script": {"SIGTERM"}}
	for name, got := range received {
		if !slices.Contains(want[strings.TrimPrefix(name, "plain ")], got) {
			t.Errorf("%s received %q", name, got)
		}
	}
}
