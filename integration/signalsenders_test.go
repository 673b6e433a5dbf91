package integration

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	cont  = syscall.SIGCONT
	tstp  = syscall.SIGTSTP
	winch = syscall.SIGWINCH
)

// A sender signals an agent as somebody does.
type sender struct {
	name string
	unit bool // the agent is the process of a systemd unit, which signals each process of it
	pids func(p *place, agent int) []int
}

var senders = []sender{
	{"agent", false, func(_ *place, agent int) []int { return []int{agent} }},
	{"group", false, func(_ *place, agent int) []int { return []int{-agent} }},
	{"each process", true, func(p *place, _ int) []int { return p.tree() }},
}

// signalled is a job of two workers that note their signals, and are signalled by s.
type signalled struct {
	sender
	p       *place
	job     *process
	workers []record
}

func (s sender) begin(t *testing.T) *signalled {
	t.Helper()
	p := newPlace(t)
	line := direct(p, 2, nil, worker("signals", p.dir("job"), "more"))
	if s.unit {
		line = append([]string{"sh", "-c", `SYSTEMD_EXEC_PID=$$ exec "$@"`, "sh"}, line...)
	}
	j := &signalled{sender: s, p: p, job: p.start(line...)}
	j.workers = records(t, p.dir("job"), 2)
	return j
}

func (j *signalled) send(s syscall.Signal) {
	for _, pid := range j.pids(j.p, j.job.pid()) {
		_ = syscall.Kill(pid, s) // one may have ended
	}
}

// await waits until each worker has noted exactly these.
func (j *signalled) await(t *testing.T, want string) {
	t.Helper()
	for _, w := range j.workers {
		var text []byte
		noted := func() bool {
			text, _ = os.ReadFile(signalsFile(j.p.dir("job"), w.Env["RANK"]))
			return string(text) == want
		}
		if !eventually(waitLimit, noted) {
			t.Fatalf("rank %s has received %q, want %q", w.Env["RANK"], text, want)
		}
	}
}

// checkEnd checks the code of the agent, and what the workers have received until their end.
func (j *signalled) checkEnd(t *testing.T, code int, want string) {
	t.Helper()
	j.job.checkCode(code)
	for _, w := range j.workers {
		w.checkSignals(t, j.p.dir("job"), want)
	}
}

// Signals that do not end a job reach each worker once, whoever has sent them, and the job goes on.
func TestSendersOfOtherSignals(t *testing.T) {
	t.Parallel()
	for _, s := range senders {
		t.Run(s.name, func(t *testing.T) {
			j := s.begin(t)
			var want []string
			for _, signal := range []syscall.Signal{winch, cont, usr1, usr2, winch} {
				j.send(signal)
				want = append(want, unix.SignalName(signal))
				j.await(t, strings.Join(want, " "))
			}
			j.send(term)
			j.checkEnd(t, 143, strings.Join(append(want, "SIGTERM"), " "))
		})
	}
}

// Signals that end a job reach each worker once if each process is signalled: the agent, which gets
// them too, adds none. To the agent or its group: TestSignalsArriveOnce.
func TestSendersOfLastSignals(t *testing.T) {
	t.Parallel()
	each := senders[len(senders)-1]
	for _, signal := range []syscall.Signal{term, intr, hup, quit} {
		t.Run(unix.SignalName(signal), func(t *testing.T) {
			j := each.begin(t)
			j.send(signal)
			j.checkEnd(t, 128+int(signal), unix.SignalName(signal))
		})
	}
}

// SIGTSTP stops workers and agent, whether it is sent to the agent or to its group; after SIGCONT
// the job goes on. Without a terminal only other programs send it; mpirun does not.
func TestSendersOfStop(t *testing.T) {
	t.Parallel()
	for _, s := range senders[:2] {
		t.Run(s.name, func(t *testing.T) {
			j := s.begin(t)
			j.send(tstp)
			pids := []int{j.job.pid()}
			for _, w := range j.workers {
				pids = append(pids, w.PID)
			}
			inState := func(stopped bool) {
				t.Helper()
				for _, pid := range pids {
					if !eventually(waitLimit, func() bool { return (stateOf(pid) == "T") == stopped }) {
						t.Fatalf("process %d is in state %s", pid, stateOf(pid))
					}
				}
			}
			inState(true)
			j.send(cont)
			inState(false)
			j.await(t, "SIGCONT")
			j.send(term)
			j.checkEnd(t, 143, "SIGCONT SIGTERM")
		})
	}
}

// At SIGTSTP, Open MPI 4's mpirun stops its tasks by SIGSTOP: the workers continue, and so does the
// job if SIGCONT follows before the peer timeout.
func TestMpirunStopsOnlyAgents(t *testing.T) {
	t.Parallel()
	if openMPI5 {
		t.Skip("what Open MPI 5 does is not known")
	}
	flags := []string{"--peer-timeout", "60s"}
	j := newJobCluster(t).runningJob(t, "openmpi", 1, flags, worker("session", jobDir))
	agents, mpirun := j.agents(), j.commands[0].pid()
	stopped := func(pid int) bool { return stateOf(pid) == "T" }
	running := func(pid int) bool { return !stopped(pid) }
	j.signal(mpirun, tstp)
	if !eventually(waitLimit, func() bool { return !slices.ContainsFunc(agents, running) }) {
		t.Fatal("not all agents are stopped")
	}
	for _, w := range j.workers {
		if stopped(w.PID) {
			t.Errorf("worker %d is stopped", w.PID)
		}
	}
	j.signal(mpirun, cont)
	if !eventually(waitLimit, func() bool { return !slices.ContainsFunc(agents, stopped) }) {
		t.Fatal("not all agents run after SIGCONT")
	}
	j.signal(agents[0], term)
	j.checkCommands(143)
	j.removeLeftovers()
}
