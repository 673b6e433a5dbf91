package integration

import (
	"syscall"
	"testing"
)

// An agent crashes: its workers end, the other agents exit with 123, and the Go runtime prints its
// stack trace. It gives the agent itself the exit code 2, which mpirun takes over.
func TestAgentCrash(t *testing.T) {
	const agents = 3
	for _, signal := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGABRT} {
		t.Run(signal.String(), func(t *testing.T) {
			p := newPlace(t)
			flags := []string{"--nodes", "3", "--store", freeAddress(t)}
			var all []*process
			for _, line := range onOneHost(agents, flags, worker("session", p.dir("job"))) {
				all = append(all, p.start(line...))
			}
			crash(p, signal, records(t, p.dir("job"), agents)[agents-1])
			all[agents-1].checkCode(2)
			checkCodes(123, all[:agents-1]...)
			checkTrace(p, all[agents-1], signal)
		})
	}
	t.Run("openmpi", func(t *testing.T) {
		p := newPlace(t)
		job := p.start(openMPI(p, agents, nil, worker("session", p.dir("job")))...)
		crash(p, syscall.SIGSEGV, records(t, p.dir("job"), agents)[agents-1])
		if code := job.code(); code != 2 && code != 123 {
			t.Errorf("mpirun ended with code %d, want that of the crashed agent or of another",
				code)
		}
		checkTrace(p, job, syscall.SIGSEGV)
	})
}

// crash crashes the agent of a worker.
func crash(p *place, signal syscall.Signal, worker record) {
	p.t.Helper()
	if err := syscall.Kill(agentAbove(worker.PID), signal); err != nil {
		p.t.Fatal(err)
	}
}

func checkTrace(p *place, printed *process, signal syscall.Signal) {
	p.t.Helper()
	name := map[syscall.Signal]string{syscall.SIGSEGV: "SIGSEGV: ", syscall.SIGABRT: "SIGABRT: "}[signal]
	if len(printed.linesWith(name)) == 0 || len(printed.linesWith("goroutine 1 ")) == 0 {
		p.t.Errorf("no line has %q and %q", name, "goroutine 1 ")
	}
	p.removeFiles()
}
