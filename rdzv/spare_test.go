package rdzv

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"rdzv/rdzv/restart"
)

// withSpares joins agents 0 to n-1, on nodes of their own.
func (j *job) withSpares(n int) []*Session {
	j.t.Helper()
	sessions := make([]*Session, n)
	for i := range n {
		sessions[i] = j.join(hosted(i))
	}
	return sessions
}

// hosted is the i-th agent, the first of which hosts the store.
func hosted(i int) Member {
	m := onHost(i, fmt.Sprint("node", i))
	m.Hosting = i == 0
	return m
}

// nextOf joins an agent to the next attempt, after its summary says that there is one.
func (j *job) nextOf(i int, s *Session) *Session {
	j.t.Helper()
	if sum := j.leave(s); sum.Restart == nil || sum.Restart.Vacant != nil {
		j.t.Fatalf("%s: %+v", s.config.Self.ID, sum)
	}
	m := hosted(i)
	m.Hosting = s.config.Self.Hosting
	return j.nextAs(s, m)
}

// Spares run nothing until they take over the seats of lost agents, one after another, with all
// their ranks; then a loss ends the job.
func TestSparesTakeOver(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 5, Rules: Rules{Spares: 2, Restarts: restart.Policy{Max: 9}}})
		sessions := j.withSpares(5)
		seatsOf := func() map[string]int {
			seats := map[string]int{}
			for i, w := range j.worlds(sessions) {
				if w.Size != 3 || w.Agents != 3 || w.Nodes != 3 {
					t.Errorf("agent %d: world %+v", i, w)
				}
				if !w.Seat.Spare {
					seats[sessions[i].config.Self.ID] = w.Seat.First()
				}
			}
			return seats
		}
		if got, want := seatsOf(), map[string]int{"agent-0": 0, "agent-1": 1, "agent-2": 2}; !reflect.DeepEqual(
			got, want) {
			t.Errorf("seats %v, want %v", got, want)
		}
		for attempt, test := range []struct {
			lost  int
			seats map[string]int
		}{
			{1, map[string]int{"agent-0": 0, "agent-3": 1, "agent-2": 2}},
			{2, map[string]int{"agent-0": 0, "agent-3": 1, "agent-4": 2}},
		} {
			alive := []int{0, 2, 3, 4}
			if attempt == 1 {
				alive = []int{0, 3, 4}
			}
			var next []*Session
			byID := map[string]*Session{}
			for _, s := range sessions {
				byID[s.config.Self.ID] = s
			}
			j.lose(byID[fmt.Sprint("agent-", test.lost)])
			for _, i := range alive {
				s := byID[fmt.Sprint("agent-", i)]
				j.ended(s)
				if !s.seat.Load().Spare {
					j.settle(s, stopped(i))
				}
			}
			for _, i := range alive {
				next = append(next, j.nextOf(i, byID[fmt.Sprint("agent-", i)]))
			}
			sessions = next
			if got := seatsOf(); !reflect.DeepEqual(got, test.seats) {
				t.Errorf("after the loss of agent %d: seats %v, want %v", test.lost, got, test.seats)
			}
		}
		for _, s := range sessions {
			if s.config.Self.ID == "agent-3" {
				j.lose(s)
			}
		}
		for _, s := range sessions[:1] {
			j.ended(s)
		}
		for _, s := range sessions {
			if id := s.config.Self.ID; id != "agent-3" {
				j.settle(s, stopped(0))
			}
		}
		if sum := j.leave(sessions[0]); sum.NoRestart != restart.Lost || sum.Restart != nil {
			t.Errorf("%+v", sum)
		}
		for _, s := range sessions {
			if s.config.Self.ID == "agent-4" {
				j.leave(s)
			}
		}
	})
}

// The loss of a spare is no failure, whether it waits or has not joined the next attempt yet, and
// also if it is about to take over a seat: another one takes that.
func TestSpareIsLost(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		warnings := make(chan error, 10)
		j := start(t, LeaderConfig{
			Tasks: 5, Rules: Rules{Spares: 3, Restarts: restart.Policy{Max: 1}}, Notify: into(warnings),
		})
		sessions := j.withSpares(5)
		j.worlds(sessions)
		expect := func(text string) {
			t.Helper()
			select {
			case err := <-warnings:
				if !strings.Contains(err.Error(), text) {
					t.Errorf("warning %q, want %q", err, text)
				}
			case <-j.ctx.Done():
				t.Fatalf("no warning %q", text)
			}
		}
		j.lose(sessions[3])
		expect("lost the spare on node3 (pid 1003): it disconnected unexpectedly; the job goes on with 2 spares")
		j.lose(sessions[1])
		rest := []*Session{sessions[0], sessions[2], sessions[4]}
		for i, s := range rest {
			if v, _ := j.ended(s).(*Verdict); v == nil || v.By != "agent-1" {
				t.Fatalf("%v", v)
			}
			if i == 0 {
				j.settle(s, stopped(0))
			}
		}
		for i, s := range rest {
			rest[i] = j.nextOf(2*i, s)
		}
		for i, w := range j.worlds(rest) {
			if w.Seat.Spare != (i == 2) || !w.Seat.Spare && w.Seat.First() != i {
				t.Errorf("agent %d: %+v", 2*i, w.Seat)
			}
		}
		j.lose(rest[2])
		expect("the job goes on with 0 spares")
		j.settle(rest[0], succeeded(0))
		j.settle(rest[1], succeeded(1))
		for _, i := range []int{0, 1} {
			if sum := j.leave(rest[i]); sum.Verdict.Kind != Done {
				t.Errorf("agent %d: %v", 2*i, sum.Verdict)
			}
		}
	})
}

// A spare that has taken over a seat is lost before the workers start: the next spare takes it.
func TestSpareIsLostWhileTheNextAttemptGathers(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 4, Rules: Rules{Spares: 2, Restarts: restart.Policy{Max: 1}}})
		sessions := j.withSpares(4)
		j.worlds(sessions)
		j.lose(sessions[1])
		j.ended(sessions[0])
		j.settle(sessions[0], stopped(0))
		other := j.nextOf(2, sessions[2])
		j.lose(sessions[3]) // takes over rank 1
		host := j.nextOf(0, sessions[0])
		for i, w := range j.worlds([]*Session{host, other}) {
			want := []Replaced{{Ranks: "1", Host: "node2", Lost: "node1"}}
			if w.Seat.First() != i || !reflect.DeepEqual(w.Replaced, want) || w.Spares != nil {
				t.Errorf("agent %d: %+v", i, w)
			}
		}
		j.finish([]*Session{host, other}, succeeded)
	})
}
