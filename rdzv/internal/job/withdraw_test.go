package job

import (
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/restart"
)

// An agent without workers may leave if the job goes on without it; otherwise that ends.
func TestWhoMayLeave(t *testing.T) {
	for name, c := range map[string]struct {
		config          Config
		spare, complete bool
		missing         bool // another one may be lost
		leaves, ends    bool
	}{
		"a spare":               {Config{}, true, false, false, true, false},
		"more than needed":      {Config{MinTasks: 1}, false, false, false, true, false},
		"as many as needed":     {Config{MinTasks: 2}, false, false, false, false, true},
		"with a seat":           {Config{}, false, false, false, false, true},
		"with workers":          {Config{MinTasks: 1}, false, true, false, false, true},
		"another one is missed": {Config{MinTasks: 1}, false, false, true, false, false},
	} {
		m := in("", joinedAgent(0), joinedAgent(1))
		m.all[1].seat.Spare = c.spare
		all := agents{present: map[string]*record.Member{}, gone: map[string]bool{}}
		p := phase{complete: c.complete}
		if c.complete {
			p.world = &record.World{}
		}
		if c.missing {
			all.deregister(base, "agent-0", 0)
		}
		l := leaving{agents: &all, members: m, phase: &p,
			losses: &losses{config: &settings{Config: c.config}, agents: &all, members: m, phase: &p}}
		l.ask("agent-1", &ending{})
		var e ending
		call := &turn{now: base}
		l.decide(call, run.Attempt(0), &e)
		l.decide(call, run.Attempt(0), &e)
		leaves := len(call.writes) == 1 && call.writes[0].Ops[0].Key == "0/signal/left/agent-1"
		if leaves != c.leaves || (len(e.wanted) == 1) != c.ends {
			t.Errorf("%s: writes %v, verdicts %v", name, call.writes, e.wanted)
		}
	}
}

// If others have received a signal too, that was for all, and no other attempt follows.
func TestWhoIsReleased(t *testing.T) {
	m := in("", joinedAgent(0), joinedAgent(1))
	c, p := &settings{Config: Config{Replaceable: true}}, &phase{}
	l := leaving{members: m, phase: p, losses: &losses{config: c, members: m, phase: p}}
	if l.releases("agent-1") {
		t.Error("its workers have not ended")
	}
	if m.settle(m.all[1]); !l.releases("agent-1") {
		t.Error("another one may take its place")
	}
	if m.all[0].ending = true; l.releases("agent-1") {
		t.Error("the signal was for all")
	}
}

// The loss of an agent that was to leave ends the job, whichever the leader learns first: its outcome
// only says that it was to leave.
func TestLossOfAgentThatIsToLeave(t *testing.T) {
	m := in("agent-1", joinedAgent(0), joinedAgent(1))
	p := &phase{complete: true, world: &record.World{}}
	all := agents{gone: map[string]bool{}}
	l := leaving{agents: &all, members: m, phase: p,
		losses: &losses{config: &settings{}, agents: &all, members: m, phase: p}}
	if c := l.unsettled("agent-1", run.Attempt(0)); len(c) != 1 {
		t.Errorf("conditions %v, want that there is no outcome", c)
	}
	var e ending
	if l.ask("agent-1", &e); len(l.asked) != 1 || len(e.wanted) > 0 {
		t.Errorf("asked %v, verdicts %v", l.asked, e.wanted)
	}
	if c := l.unsettled("agent-1", run.Attempt(0)); len(c) != 0 {
		t.Errorf("conditions %v, want none", c)
	}
	all.gone["agent-1"] = true
	if l.ask("agent-1", &e); len(e.wanted) != 1 {
		t.Errorf("verdicts %v, want one", e.wanted)
	}
}

// An agent that has left is not called lost.
func TestVerdictAboutAgentThatHasLeft(t *testing.T) {
	m := in("", joinedAgent(0))
	m.all[0].withdrawn = true
	l := losses{config: &settings{}, agents: &agents{}, members: m, phase: &phase{}}
	if v := l.verdict(m.all[0]); v.Kind != record.Ended || v.Signal == 0 {
		t.Errorf("verdict %q", v.Error())
	}
}

// The next world waits until an agent whose workers have ended has left: until then processes run that
// its workers have left. If it is lost instead, how long they may run is not known.
func TestNextWorldAwaitsAgentThatLeaves(t *testing.T) {
	const timeout = 10 * time.Second
	for name, c := range map[string]struct {
		elected bool
		end     []Change
		wait    time.Duration // before the next world, after the end
		waits   bool          // it does not come
	}{
		"has not left":            {false, nil, 0, true},
		"goodbye":                 {false, []Change{{Key: "agent/agent-1"}}, 0, false},
		"lost":                    {false, []Change{{Key: "lost/agent-1", Value: record.Loss{}}, {Key: "agent/agent-1"}}, timeout + lostMargin, false},
		"goodbye in etcd":         {true, []Change{{Key: "lost/agent-1", Value: record.Loss{Left: true}}, {Key: "agent/agent-1"}}, 0, false},
		"its lease has ended":     {true, []Change{{Key: "agent/agent-1"}}, 0, true},
		"and it is lost for good": {true, []Change{{Key: "agent/agent-1"}, {Key: "lost/agent-1", Value: record.Loss{}}}, timeout + lostMargin, false},
	} {
		s := newState(base, Config{Tasks: 1, MinTasks: 1, PeerTimeout: timeout,
			ReturnTime: time.Second, Rules: Rules{Restarts: restart.Policy{Max: 1}}}, Store{Elected: c.elected})
		s.agents.register("agent-0", joinedAgent(0))
		s.agents.register("agent-1", joinedAgent(1))
		before := in("", joinedAgent(0), joinedAgent(1))
		before.all[1].settled = true
		s.attempt.members = *before
		s.attempt.release("agent-1")
		s.attempt = s.attempt.next(base, 1, 0)
		s.Apply(base, c.end...)
		member := Change{run.Attempt(1).Members().Of("agent-0"), joinedAgent(0), 9}
		writes, _ := s.Apply(base, member)
		wait := s.Wake().Sub(base)
		if starts := len(writes) == 1 && writes[0].What == "publish the world"; starts != (!c.waits && c.wait == 0) ||
			c.wait > 0 && wait != c.wait {
			t.Errorf("%s: writes %v, then %v later", name, writes, wait)
		}
	}
}
