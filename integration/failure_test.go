package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// One worker fails: all are stopped, the launcher ends with the worker's code, and the rank is named.
func TestFails(t *testing.T) {
	for _, how := range []struct {
		role   []string
		code   int
		status string // in the line that names the rank
	}{
		{[]string{"exit", "1"}, 1, "exit 1"},
		{[]string{"exit", "7"}, 7, "exit 7"},
		{[]string{"exit", "255"}, 255, "exit 255"},
		{[]string{"die", strconv.Itoa(int(syscall.SIGKILL))}, 128 + 9, "killed by SIGKILL"},
		{[]string{"die", strconv.Itoa(int(syscall.SIGSEGV))}, 128 + 11, "killed by SIGSEGV"},
		{[]string{"die", strconv.Itoa(int(syscall.SIGTERM))}, 128 + 15, "killed by SIGTERM"},
	} {
		t.Run(how.role[0]+how.role[1], func(t *testing.T) {
			forEachLauncher(t, func(t *testing.T, l launcher) {
				p := l.place(t)
				dir := p.dir("job")
				job := p.start(l.line(p, 4, nil, worker(how.role[0], dir, "2", how.role[1]))...)
				if code := job.code(); code != how.code {
					t.Errorf("the launcher ended with %d, want %d", code, how.code)
				}
				records(t, dir, 4)
				checkStatus(t, job, 2, how.status)
			})
		})
	}
}

// checkStatus checks that every agent's line, and the report of one of them, name the rank that failed first and exactly
// this status.
func checkStatus(t *testing.T, job *process, rank int, status string) {
	t.Helper()
	took := regexp.QuoteMeta(status) + ` after [0-9.]+s`
	line := regexp.MustCompile(fmt.Sprintf(`^rdzv: rank %d failed first: %s on \S+ \(local rank %[1]d, pid [0-9]+\)$`,
		rank, took))
	lines := job.linesWith("failed first:")
	if len(lines) == 0 || slices.ContainsFunc(lines, func(l string) bool { return !line.MatchString(l) }) {
		t.Errorf("the agents reported the failure as %q, want lines that match %s", lines, line)
	}
	report := regexp.MustCompile(`^rdzv:   how +` + took + `$`)
	if lines := job.linesWith("rdzv:   how "); len(lines) != 1 || !report.MatchString(lines[0]) {
		t.Errorf("the report gives the status as %q, want one line that matches %s", lines, report)
	}
}

// Every agent exits with the first failure's code, not only that of the rank that failed. Open MPI gives no time
// once two ranks have ended badly (each SIGCHLD cuts its wait short): those that it kills with SIGKILL tell nothing.
func TestEveryAgentExitsWithTheCode(t *testing.T) {
	p := newPlace(t)
	dir, codes := p.dir("job"), p.dir("codes")
	script := `trap : TERM; codes=$1; shift; "$@"; code=$?; echo $code > "$codes.$OMPI_COMM_WORLD_RANK" && mv "$codes.$OMPI_COMM_WORLD_RANK" "$codes/$OMPI_COMM_WORLD_RANK"; exit $code`
	line := append(mpirunCommand(4), "sh", "-c", script, "sh", codes)
	job := p.start(append(line, rdzvExec(nil, worker("exit", dir, "1", "42"))...)...)
	if code := job.code(); code != 42 {
		t.Errorf("mpirun ended with %d, want 42", code)
	}
	told, err := filepath.Glob(filepath.Join(codes, "*"))
	if err != nil || len(told) == 0 {
		t.Fatalf("no agent has told its code (%v)", err)
	}
	for _, file := range told {
		if code, err := os.ReadFile(file); err != nil || string(code) != "42\n" {
			t.Errorf("the agent of rank %s ended with %q, want 42 (%v)", filepath.Base(file), code, err)
		}
	}
}

// SIGTERM, and Ctrl-C at a terminal, to whatever the user has started end everything.
func TestStoppedAtTheLauncher(t *testing.T) {
	for name, stop := range map[string]func(l launcher, job *process){
		"SIGTERM": func(_ launcher, job *process) { job.signal(syscall.SIGTERM) },
		"CtrlC": func(l launcher, job *process) {
			job.interrupt()
			for l.interrupts > 1 && !job.endsWithin(typing) {
				job.interrupt()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			forEachLauncher(t, func(t *testing.T, l launcher) {
				p := l.place(t)
				dir := p.dir("job")
				job := p.start(l.line(p, 4, nil, worker("wait", dir))...)
				records(t, dir, 4)
				stop(l, job)
				if code := job.code(); code == 0 {
					t.Error("the launcher ended with 0")
				}
				if l.kills {
					p.removeFiles()
				}
			})
		})
	}
}

// Without a launcher the agent is what the user has started, and ends as the worker would have without it.
func TestStoppedWithoutLauncher(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			p := newPlace(t)
			dir := p.dir("job")
			job := p.start(direct(p, 2, nil, worker("wait", dir))...)
			records(t, dir, 2)
			job.signal(sig)
			if code := job.code(); code != 128+int(sig) {
				t.Errorf("rdzv ended with %d, want %d", code, 128+int(sig))
			}
		})
	}
}

// SIGTERM to a single agent ends the job of all agents.
func TestStoppedAtAnAgent(t *testing.T) {
	forEachLauncher(t, func(t *testing.T, l launcher) {
		p := l.place(t)
		dir := p.dir("job")
		job := p.start(l.line(p, 4, nil, worker("wait", dir))...)
		records(t, dir, 4)
		agents := p.agents()
		if len(agents) != l.agents(4) {
			t.Fatalf("%d agents: %v, want %d", len(agents), agents, l.agents(4))
		}
		if err := syscall.Kill(agents[len(agents)-1], syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := job.code(); code != 128+15 {
			t.Errorf("the launcher ended with %d, want 143", code)
		}
	})
}
