package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// cutForLong disconnects a host until the agents there have ended. If it has the store, those of the
// other hosts end.
func (r *restartJob) cutForLong() {
	r.t.Helper()
	cut := r.hosts[r.current.host-1]
	host := strconv.Itoa(cut)
	r.cluster.hosts("cut", host)
	if !r.continues() {
		if !eventually(waitLimit, func() bool { return len(r.agents()) == 0 }) {
			r.t.Errorf("agents run although node%s is disconnected", host)
		}
		r.cluster.hosts("heal", host)
		return
	}
	lost := []int{cut}
	if cut == storeHost && r.cluster.store == nil {
		lost = slices.DeleteFunc(slices.Clone(r.hosts), func(h int) bool { return h == cut })
		r.loseSpare()
	}
	for _, host := range lost {
		r.commands[host-1].code()
	}
	r.cluster.hosts("heal", host)
	r.replace(lost...)
}

// continues tells whether the job restarts after the present fault.
func (r *restartJob) continues() bool {
	return r.current.effect == restarts && r.attempt < restartsPerJob
}

// killAgent kills the agent of a host, at any moment of an attempt.
func (r *restartJob) killAgent(host int) {
	r.t.Helper()
	if host == r.spare {
		r.current.effect = nothing
		r.killSpare()
		return
	}
	r.signal(r.agentOn(host), syscall.SIGKILL)
	if r.continues() {
		r.replace(host)
	}
}

// killTwoAgents kills those of all hosts but the fault's at once.
func (r *restartJob) killTwoAgents() {
	r.t.Helper()
	stays := r.hosts[r.current.host-1]
	lost := slices.DeleteFunc(slices.Clone(r.hosts), func(host int) bool { return host == stays })
	first, second := r.agentOn(lost[0]), r.agentOn(lost[1])
	r.signal(first, syscall.SIGKILL)
	r.signal(second, syscall.SIGKILL)
	if r.continues() {
		r.replace(lost...)
	}
}

// freezeLeader stops the leader until the others have lost it.
func (r *restartJob) freezeLeader() {
	r.t.Helper()
	leads := r.leader()
	host := r.hostOf(leads.PID)
	r.noteAgent(leads.PID)
	r.signalled[leads.PID] = syscall.SIGSTOP
	thaw := r.freeze(leads)
	text := "lost the agent of "
	if host == r.spare {
		text = "lost the spare on "
	}
	lost := func(agent *process) bool { return len(r.linesSince(agent, text)) > 0 }
	if !eventually(waitLimit, func() bool { return slices.ContainsFunc(r.commands, lost) }) {
		r.t.Error("no agent has lost the leader")
	}
	thaw()
	if host == r.spare {
		r.current.effect = nothing
		r.loseSpare()
	} else if r.continues() {
		r.commands[host-1].code()
		r.replace(host)
	}
}

// preempt sends SIGTERM to the agent of a host, which leaves the job if another may take its place.
func (r *restartJob) preempt() {
	r.t.Helper()
	host := r.hosts[r.current.host-1]
	r.signal(r.agentOn(host), syscall.SIGTERM)
	if r.continues() {
		r.preempted = true
		left := r.commands[host-1]
		r.replace(host)
		left.checkCode(r.current.code)
	}
}

// killSpare kills the spare, if it still waits. The job goes on.
func (r *restartJob) killSpare() {
	r.t.Helper()
	if r.spare != 0 {
		r.signal(r.agentOn(r.spare), syscall.SIGKILL)
		says := func(c *process) bool { return len(r.linesSince(c, "lost the spare on ")) > 0 }
		if !eventually(waitLimit, func() bool { return slices.ContainsFunc(r.commands, says) }) {
			r.t.Fatal("no agent has printed that the spare is lost") // the one that leads the job
		}
		r.loseSpare()
		r.awaitProgress()
	}
}

// loseSpare notes that the spare, if there is one, is lost.
func (r *restartJob) loseSpare() {
	if r.spare != 0 {
		r.lost, r.left = true, append(r.left, r.spare)
	}
	r.spare = 0
}

// replace waits until the spare has taken the place of an agent, or starts those of the hosts again
// when the others wait for them.
func (r *restartJob) replace(hosts ...int) {
	r.t.Helper()
	r.lost = true
	if r.spare != 0 {
		r.announced(fmt.Sprintf("node%d takes over ", r.spare))
		r.hosts[slices.Index(r.hosts, hosts[0])] = r.spare
		r.spare, r.left = 0, append(r.left, hosts...)
	} else {
		r.announced("for an agent in place of ")
		for _, host := range hosts {
			old := r.commands[host-1]
			r.commands[host-1] = r.startWith(old.cmd.Env, old.argv...)
		}
	}
	r.note(r.ranksOf(r.attempt))
}

// announced waits until an agent prints a line with a text, after the fault, and notes the attempt
// that it names: an agent that is lost before the workers start costs no attempt.
func (r *restartJob) announced(text string) {
	r.t.Helper()
	var lines []string
	if !eventually(waitLimit, func() bool {
		for _, command := range r.commands {
			lines = append(lines, r.linesSince(command, text, "(restart ")...)
		}
		return len(lines) > 0
	}) {
		r.t.Fatalf("no agent has printed another line with %q", text)
	}
	_, number, _ := strings.Cut(lines[0], "(restart ")
	if _, err := fmt.Sscanf(number, "%d of", &r.attempt); err != nil {
		r.t.Fatalf("%q has no number", lines)
	}
}

// linesSince are the lines of a command with these texts, since the present fault.
func (r *restartJob) linesSince(command *process, texts ...string) []string {
	lines, _ := command.output()
	return slices.DeleteFunc(slices.Clone(lines[r.printed[command]:]), func(line string) bool {
		lacks := func(text string) bool { return !strings.Contains(line, text) }
		return slices.ContainsFunc(texts, lacks)
	})
}
