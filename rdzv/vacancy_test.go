package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/restart"
)

// replaceable is a job whose lost agents can be replaced.
func replaceable(agents, restarts int) LeaderConfig {
	return LeaderConfig{
		Tasks: agents, Rules: Rules{Restarts: restart.Policy{Max: restarts}}, Replaceable: true,
	}
}

// member's agent alone on a host that others can name.
func onHost(i int, host string) Member {
	m := member(i)
	m.Host, m.Node = host, host
	return m
}

// arrival is what became of an agent that joins while others do something.
type arrival struct {
	session *Session
	err     error
}

// arrives joins this member in the background.
func (j *job) arrives(m Member) <-chan arrival { return j.arrivesLate(j.agent(m)) }

// arrivesLate is arrives with any configuration.
func (j *job) arrivesLate(c Config) <-chan arrival {
	arrived, client := make(chan arrival, 1), j.client(c.Self.ID)
	go func() {
		s, err := Join(j.ctx, client, c)
		if err == nil {
			j.leavesAtEnd(s)
		}
		arrived <- arrival{s, err}
	}()
	return arrived
}

// loseBefore makes an agent be lost, and returns the summaries of the others, which have settled.
func (j *job) loseBefore(lost *Session, rest []*Session) []Summary {
	j.t.Helper()
	id := lost.config.Self.ID
	j.lose(lost)
	for _, s := range rest {
		if v, _ := j.ended(s).(*Verdict); v == nil || v.Kind != Lost || v.By != id {
			j.t.Fatalf("%s was told %v", s.config.Self.ID, v)
		}
	}
	return j.finish(rest, stopped)
}

// An agent that is started on the host of a lost one, while the others still stop their workers, or
// afterwards, or on another host, has the ranks of the lost one in the next attempt.
func TestNewcomerTakesTheSeatOfALostAgent(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		for _, test := range []struct {
			name, host string
			early      bool
		}{
			{"at once", "node1", true}, {"later", "node1", false}, {"on another node", "node9", true},
			{"on another node, later", "node9", false},
		} {
			t.Run(test.name, func(t *testing.T) {
				j := start(t, replaceable(3, 2))
				var sessions []*Session
				for i := range 3 {
					m := onHost(i, fmt.Sprint("node", i))
					m.Hosting = i == 0
					sessions = append(sessions, j.join(m))
				}
				first := j.worlds(sessions)
				for attempt := 1; attempt <= 2; attempt++ {
					var newcomer <-chan arrival
					rest := []*Session{sessions[0], sessions[2]}
					host := cmp.Or(test.host, "node1")
					j.lose(sessions[1])
					j.ended(rest[0])
					if test.early {
						newcomer = j.arrives(onHost(10+attempt, host))
					}
					from := sessions[1].config.Self.Host
					for _, sum := range j.finish(rest, stopped) {
						want := &Restart{Attempt: attempt, Vacant: []NodeRanks{{Host: from, Ranks: "1"}}}
						if sum.Restart != nil {
							want.Delay = sum.Restart.Delay
						}
						if !reflect.DeepEqual(sum.Restart, want) {
							t.Fatalf("%+v, want %+v", sum.Restart, want)
						}
					}
					if !test.early {
						newcomer = j.arrives(onHost(10+attempt, host))
					}
					for i, s := range rest {
						m := onHost(2*i, fmt.Sprint("node", 2*i))
						m.Hosting = s.config.Self.Hosting
						sessions[2*i] = j.nextAs(s, m)
					}
					a := <-newcomer
					if a.err != nil {
						t.Fatal(a.err)
					}
					sessions[1] = a.session
					for i, w := range j.worlds(sessions) {
						replaced := []Replaced{{Ranks: "1", Host: host, Lost: from}}
						if w.Attempt != attempt || !reflect.DeepEqual(w.Seat, first[i].Seat) ||
							!reflect.DeepEqual(w.Replaced, replaced) ||
							w.Layout[1] != (NodeRanks{Host: host, Ranks: "1"}) ||
							!w.Began.Equal(first[i].Began) {
							t.Errorf("agent %d: world %+v", i, w)
						}
					}
				}
				for i, sum := range j.finish(sessions, succeeded) {
					if sum.Verdict.Kind != Done {
						t.Errorf("agent %d: %v", i, sum.Verdict)
					}
				}
			})
		}
	})
}

// Only one of several agents takes over a seat, and none with another number of workers. The others
// are told that the job has all its agents, and one on a node that has an agent which one that is.
func TestOneNewcomerForEachVacancy(t *testing.T) {
	c, warnings := replaceable(3, 1), make(chan error, 10)
	c.Notify = into(warnings)
	j := start(t, c)
	var sessions []*Session
	for i := range 3 {
		m := onHost(i, fmt.Sprint("node", i))
		m.Hosting = i == 0
		sessions = append(sessions, j.join(m))
	}
	j.worlds(sessions)
	j.loseBefore(sessions[2], sessions[:2])
	large := onHost(20, "node3")
	large.Tasks = Unplaced(2)
	var newcomers []*Session
	a := <-j.arrives(onHost(21, "node1"))
	if other, _ := errors.AsType[*OccupiedError](a.err); other == nil || other.PID != 1001 {
		t.Errorf("on a node that has an agent: %v", a.err)
	}
	for _, m := range []Member{large, onHost(22, "node4"), onHost(23, "node5")} {
		a := <-j.arrives(m)
		if a.err != nil {
			t.Fatalf("%s: %v", m.ID, a.err)
		}
		newcomers = append(newcomers, a.session)
	}
	const want = "the agent on node3 (pid 1020) cannot take over the ranks of node2: it runs 2 " +
		"workers, not 1"
	if err := <-warnings; err.Error() != want {
		t.Errorf("warning %q, want %q", err, want)
	}
	for i := range 2 {
		m := onHost(i, fmt.Sprint("node", i))
		m.Hosting = sessions[i].config.Self.Hosting
		sessions[i] = j.nextAs(sessions[i], m)
	}
	sessions[2] = newcomers[1]
	j.worlds(sessions)
	for _, s := range []*Session{newcomers[0], newcomers[2]} {
		if _, err := s.World(j.ctx); err != ErrFull {
			t.Errorf("%s: %v, want ErrFull", s.config.Self.ID, err)
		}
		s.Leave(j.ctx)
	}
	if a := <-j.arrives(onHost(24, "node6")); a.err != ErrFull {
		t.Errorf("joining later: %v", a.err)
	}
	j.finish(sessions, succeeded)
}

// Agents are lost while others join the next attempt: one of those before, and one that has taken
// over a seat. Their seats become vacant too, on the same hosts, and the attempt is the same.
func TestLossWhileTheNextAttemptGathers(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, replaceable(3, 1))
		var sessions []*Session
		for i := range 3 {
			m := onHost(i, fmt.Sprint("node", i))
			m.Hosting = i == 0
			sessions = append(sessions, j.join(m))
		}
		j.worlds(sessions)
		j.loseBefore(sessions[2], sessions[:2])
		other := <-j.arrives(onHost(20, "node2"))
		if other.err != nil {
			t.Fatal(other.err)
		}
		lost := j.nextAs(sessions[1], onHost(1, "node1"))
		j.lose(other.session)
		j.lose(lost)
		j.ended(lost)
		var newcomers []*Session
		for i, host := range []string{"node1", "node2"} {
			a := j.arrivesUntilFree(onHost(30+i, host))
			newcomers = append(newcomers, a)
		}
		host := onHost(0, "node0")
		host.Hosting = sessions[0].config.Self.Hosting
		all := append([]*Session{j.nextAs(sessions[0], host)}, newcomers...)
		for i, w := range j.worlds(all) {
			if w.Attempt != 1 || w.Seat.First() != i || len(w.Replaced) != 2 {
				t.Errorf("agent %d: %+v", i, w)
			}
		}
		j.finish(all, succeeded)
	})
}

// arrivesUntilFree joins an agent as soon as its host is free: the loss of the agent there may not
// be known yet.
func (j *job) arrivesUntilFree(m Member) *Session {
	j.t.Helper()
	for {
		a := <-j.arrives(m)
		if _, occupied := errors.AsType[*OccupiedError](a.err); !occupied {
			if a.err != nil {
				j.t.Fatal(a.err)
			}
			return a.session
		}
	}
}

// A vacancy that nobody fills ends the job as the loss of the agent.
func TestVacancyUntilTheJoinTimeout(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, replaceable(2, 1))
		sessions := j.agents(2)
		j.worlds(sessions)
		if sum := j.loseBefore(sessions[1], sessions[:1])[0]; sum.Restart == nil {
			t.Fatalf("%+v", sum)
		}
		m := member(0)
		m.Hosting = sessions[0].config.Self.Hosting
		next, err := sessions[0].Next(j.ctx, m, time.Now().Add(50*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		v, _ := j.ended(next).(*Verdict)
		if v == nil || v.Kind != Lost || v.By != "agent-1" || v.Rank != 1 ||
			!strings.Contains(v.Text, "(pid 1001 on node1), and no other agent took its place within") {
			t.Errorf("%+v", v)
		}
		j.settle(next)
		if sum := j.leave(next); sum.Restart != nil || !sum.Settled {
			t.Errorf("%+v", sum)
		}
	})
}

// No attempt follows a loss if no agent may take the place, or if the loss is final.
func TestFinalLoss(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		for name, test := range map[string]struct {
			config LeaderConfig
			lose   func(*job, *Session) error
			want   restart.Reason
		}{
			"agent": {LeaderConfig{Rules: Rules{Restarts: restart.Policy{Max: 1}}}, func(j *job, s *Session) error {
				j.lose(s)
				return nil
			}, restart.Lost},
			"launcher": {replaceable(0, 1), func(j *job, s *Session) error {
				return s.ReportLoss(j.ctx, "the launcher died", true)
			}, ""},
		} {
			t.Run(name, func(t *testing.T) {
				test.config.Tasks = 2
				j := start(t, test.config)
				sessions := j.agents(2)
				j.worlds(sessions)
				if err := test.lose(j, sessions[1]); err != nil {
					t.Fatal(err)
				}
				j.ended(sessions[0])
				if test.want == "" { // this agent is still there
					j.settle(sessions[1], stopped(1))
				}
				sum := j.finish(sessions[:1], stopped)[0]
				if sum.Verdict.Kind != Lost || sum.Restart != nil || sum.NoRestart != test.want {
					t.Errorf("%+v", sum)
				}
				ctx, cancel := context.WithCancel(j.ctx)
				cancel()
				sessions[1].Leave(ctx)
			})
		}
	})
}

// If a runner is lost its agent is not: the same agents form the next attempt.
func TestRestartAfterALossWithoutVacancy(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 2, Rules: Rules{Restarts: restart.Policy{Max: 1}}})
		sessions := j.agents(2)
		j.worlds(sessions)
		if err := sessions[1].ReportLoss(j.ctx, "lost the runner", false); err != nil {
			t.Fatal(err)
		}
		for i, sum := range j.finish(sessions, stopped) {
			if sum.Restart == nil || sum.Restart.Vacant != nil {
				t.Fatalf("agent %d: %+v", i, sum)
			}
			sessions[i] = j.next(i, sessions[i])
		}
		j.worlds(sessions)
		j.finish(sessions, succeeded)
	})
}
