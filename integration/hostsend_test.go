package integration

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stubborn is a program that only SIGKILL ends.
var stubborn = []string{"sh", "-c", `trap "" INT TERM HUP; echo rank $RANK holds; while :; do sleep 1; done`}

// How a job ends that runs, or has not begun, and that all hosts are clean afterwards.
func TestHostsEnd(t *testing.T) {
	t.Parallel()
	b := newSSHBed(t, 3, "--without", "3")
	b.install(1, 3)
	const two = "node1:1,node2:2"
	for _, row := range []hostsRow{
		{name: "a rank fails", hosts: two, code: 7, shows: []string{"rank 2", "no more paper"},
			program: []string{"sh", "-c",
				`[ $RANK = 2 ] || exec sleep 1000; sleep 1; echo ValueError: no more paper >&2; exit 7`}},
		{name: "a signal ends a rank", hosts: two, code: 128 + int(syscall.SIGSEGV),
			program: []string{"sh", "-c", `[ $RANK = 1 ] || exec sleep 1000; kill -SEGV $$`}},
		{name: "Ctrl-C", hosts: two, program: holdRank, code: 130, during: func(r *hostsRun) {
			r.holds(3)
			r.secretsAreNotInArguments()
			r.interrupt()
		}},
		{name: "Ctrl-C from no host of the job", from: 3, hosts: two, program: holdRank, code: 130,
			during: func(r *hostsRun) { r.holds(3); r.interrupt() }},
		{name: "Ctrl-C before a login has ended", hosts: "node1:1,waits@node2:1", code: 130,
			hides: []string{"rank "}, during: func(r *hostsRun) {
				b.waitForProcess(r.t, "sleep 3")
				r.interrupt()
			}},
		{name: "Ctrl-C before an agent has joined", from: 3, hosts: "node1:1,node2:1", code: 130,
			hides: []string{"rank 0 of"}, prepare: func(*hostsRun) { b.hosts("isolate", "1"); b.hosts("isolate", "2") },
			during: func(r *hostsRun) { r.job.waitFor("node2 cannot join yet"); r.interrupt() }},
		{name: "Ctrl-C twice", hosts: two, program: stubborn, code: anyFailure, during: func(r *hostsRun) {
			r.holds(3)
			r.interrupt()
			time.Sleep(retypeTime)
			r.interrupt()
			if !r.job.endsWithin(8 * time.Second) {
				r.t.Error("the second Ctrl-C does not end the job within 8 s")
			}
		}},
		{name: "SIGTERM", hosts: two, program: holdRank, code: 143,
			during: func(r *hostsRun) { r.holds(3); r.send(syscall.SIGTERM) }},
		{name: "SIGHUP", hosts: two, program: holdRank, code: 129,
			during: func(r *hostsRun) { r.holds(3); r.send(syscall.SIGHUP) }},
		{name: "SIGKILL to the starter", hosts: two, program: holdRank, code: 137,
			during: func(r *hostsRun) { r.holds(3); r.send(syscall.SIGKILL) }},
		{name: "SIGKILL to the starter on no host of the job", from: 3, hosts: two, program: holdRank, code: 137,
			during: func(r *hostsRun) { r.holds(3); r.send(syscall.SIGKILL) }},
		{name: "SIGKILL to one ssh", hosts: two, program: holdRank, code: anyFailure, shows: []string{"node2"},
			during: func(r *hostsRun) {
				r.holds(3)
				b.signalOn(r.t, b.waitForProcess(r.t, "ssh ", "node2"), syscall.SIGKILL)
			}},
		{name: "SIGKILL to an agent", hosts: two, program: holdRank, code: anyFailure, shows: []string{"node2"},
			during: func(r *hostsRun) { r.holds(3); b.signalOn(r.t, r.agentOn(2), syscall.SIGKILL) }},
		{name: "SIGUSR1", hosts: "node1:1,node2:1", code: 0,
			program: []string{"sh", "-c", `trap 'echo rank $RANK got it; exit 0' USR1; echo rank $RANK holds; while :; do sleep 0.2; done`},
			shows:   []string{"rank 0 got it", "rank 1 got it"},
			during:  func(r *hostsRun) { r.holds(2); r.send(syscall.SIGUSR1) },
			after:   func(r *hostsRun) { r.once("rank 1 got it") }},
		{name: "--max-restarts and a lost host", hosts: two, flags: []string{"--max-restarts", "3"}, program: holdRank,
			code: anyFailure, during: func(r *hostsRun) {
				r.holds(3)
				b.signalOn(r.t, b.waitForProcess(r.t, "ssh ", "node2"), syscall.SIGKILL)
			}},
	} {
		row.run(t, b)
	}
}

// Silence of the starter or of a host ends the job too. Each has hosts of its own, because all wait.
func TestHostsLost(t *testing.T) {
	t.Parallel()
	const two = "node1:1,node2:2"
	rows := []hostsRow{
		{name: "the starter's cable is cut", sshd: true, from: 3, hosts: two, program: holdRank, code: anyFailure,
			during: func(r *hostsRun) { r.holds(3); r.bed.hosts("cut", "3"); r.workersEnd() }},
		{name: "a host is powered off", hosts: two, program: holdRank, code: anyFailure, shows: []string{"node2"},
			during: func(r *hostsRun) { r.holds(3); r.bed.sshd("off", "2") }},
		{name: "the starter is stopped", hosts: two, program: holdRank, code: anyFailure, during: func(r *hostsRun) {
			r.holds(3)
			r.send(syscall.SIGSTOP)
			r.workersEnd()
			r.send(syscall.SIGCONT)
		}},
		{name: "a host's cable is cut", sshd: true, long: true, hosts: two, program: holdRank, code: anyFailure, shows: []string{"node2"},
			during: func(r *hostsRun) { r.holds(3); r.bed.hosts("cut", "2"); r.workersEnd() }},
		{name: "the first host's cable is cut", sshd: true, long: true, from: 3, hosts: two, program: holdRank, code: anyFailure,
			shows: []string{"node1"}, during: func(r *hostsRun) { r.holds(3); r.bed.hosts("cut", "1"); r.workersEnd() }},
		{name: "a host freezes", long: true, hosts: two, program: holdRank, code: anyFailure, shows: []string{"node2"},
			during: func(r *hostsRun) {
				r.holds(3)
				r.bed.sshd("freeze", "2")
				_ = r.job.code()
				r.bed.sshd("thaw", "2")
			}},
	}
	var all []scenario
	for _, row := range rows {
		if row.long && !*wholeMatrix {
			continue
		}
		all = append(all, scenario{row.name, func(t *testing.T) {
			b := newSSHBed(t, 3, "--plain", "--without", "3")
			b.install(1, 3)
			row.name = "job"
			row.run(t, b)
		}})
	}
	runConcurrently(t, all)
}

// Ctrl-Z stops the workers on all hosts for longer than the starter may be silent, and fg continues
// them. Ctrl-C then ends the job.
func TestHostsTerminal(t *testing.T) {
	t.Parallel()
	b := newSSHBed(t, 2, "--plain")
	b.install(1)
	p := b.newPlace(t)
	bash := []string{"env", "TERM=dumb", "PS1=" + shellPrompt, "bash", "--norc", "--noediting", "-i"}
	term := openTerminal(p.place, p.root, b.as(1, "you", bash...))
	line := hostsRow{hosts: "node1:1,node2:1", program: []string{"sh", "-c", "echo rank $RANK holds; exec sleep 1001"}}
	term.typeKeys(quoted(line.line()) + "\n")
	term.waitFor("rank 0 holds\r\n")
	term.waitForScreen("rank 1 holds\r\n")
	state := func(want string) bool {
		n := 0
		for pid, text := range b.commandLines() {
			if text == "sleep 1001" && (stateOf(pid) == "T") == (want == "T") {
				n++
			}
		}
		return n == 2
	}
	term.typeAndWait("\x1a", "Stopped", shellPrompt)
	if !eventually(5*time.Second, func() bool { return state("T") }) {
		t.Error("Ctrl-Z has not stopped the workers on both hosts")
	}
	if *wholeMatrix {
		time.Sleep(20 * time.Second)
	}
	term.typeKeys("fg\n")
	if !eventually(5*time.Second, func() bool { return state("S") }) {
		t.Error("fg has not continued the workers on both hosts")
	}
	term.typeAndWait("\x03", shellPrompt)
	term.typeAndWait("echo code=$?\n", "code=130")
	term.typeAndWait("exit\n", "exit")
	b.checkLeft(t)
}

// waitForScreen waits for a text anywhere on the screen.
func (term *terminal) waitForScreen(text string) {
	term.t.Helper()
	if !eventually(waitLimit, func() bool {
		term.mu.Lock()
		defer term.mu.Unlock()
		return strings.Contains(term.screen, text)
	}) {
		term.t.Fatalf("the terminal does not show %q within %v", text, waitLimit)
	}
}

// interrupt is Ctrl-C to the starter, send another signal to the starter alone.
func (r *hostsRun) interrupt() {
	r.t.Helper()
	r.bed.signalOn(r.t, -r.job.cmd.Process.Pid, intr)
}

func (r *hostsRun) send(s syscall.Signal) {
	r.t.Helper()
	r.bed.signalOn(r.t, r.job.pid(), s)
}

// workersEnd waits until no host has a worker of holdRank.
func (r *hostsRun) workersEnd() {
	r.t.Helper()
	began := time.Now()
	if !eventually(25*time.Second, func() bool {
		for _, line := range r.bed.commandLines() {
			if line == "sleep 1000" {
				return false
			}
		}
		return true
	}) {
		r.t.Error("workers still run after 25 s")
	}
	r.t.Logf("the workers ended after %v", time.Since(began).Round(time.Second/10))
}

// agentOn is the agent on a host: the process that other hosts know, with a worker below it.
func (r *hostsRun) agentOn(host int) int {
	r.t.Helper()
	name := fmt.Sprint("node", host)
	for pid, line := range r.bed.commandLines() {
		if line == "sleep 1000" && r.bed.hostOf(pid) == name {
			return agentAbove(pid)
		}
	}
	r.t.Fatalf("no worker runs on %s", name)
	return 0
}

// hostOf is the name of the host on which a process runs.
func (b *sshBed) hostOf(pid int) string {
	b.t.Helper()
	return strings.TrimSpace(b.sshd("of", fmt.Sprint(pid)))
}

// secretsAreNotInArguments checks what any user of the hosts sees of ssh and of what sshd runs.
func (r *hostsRun) secretsAreNotInArguments() {
	r.t.Helper()
	logins := 0
	for _, line := range r.bed.commandLines() {
		if !strings.HasPrefix(line, "ssh ") && !strings.Contains(line, "rdzv-") {
			continue
		}
		logins++
		if strings.Contains(line, "sleep 1000") || strings.Contains(line, "RDZV_") {
			r.t.Errorf("the program or a variable is an argument: %q", line)
		}
	}
	if logins == 0 {
		r.t.Error("no process of ssh was found")
	}
}
