package rdzv

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// received are the signals that an agent has received, up to the mark, which it receives last.
func (j *job) received(s *Session, mark int) (list []SharedSignal) {
	j.t.Helper()
	for {
		select {
		case signal := <-s.SharedSignals():
			if signal.Signal == mark {
				return list
			}
			list = append(list, signal)
		case <-j.ctx.Done():
			j.t.Fatalf("an agent has received %v and not signal %d", list, mark)
		}
	}
}

func (j *job) share(s *Session, signal int, direct bool) {
	j.t.Helper()
	if err := s.ShareSignal(j.ctx, signal, time.Now(), direct); err != nil {
		j.t.Error(err)
	}
}

// Whichever agents receive a signal, all share it once. Another signal is another one, and the same
// one is another one some time later.
func TestSignalIsSharedOnce(t *testing.T) {
	const n, usr1, usr2, mark = 8, 10, 12, 1
	j := start(t, LeaderConfig{Tasks: n})
	sessions := j.agents(n)
	j.worlds(sessions)
	each(sessions, func(_ int, s *Session) { j.share(s, usr1, true) })
	j.share(sessions[3], usr1, false) // less than ShareOnce later
	j.share(sessions[3], usr2, false)
	j.share(sessions[5], mark, false)
	for i, s := range sessions {
		got := j.received(s, mark)
		if len(got) != 2 || !got[0].Direct || got[1].Direct ||
			got[0].Signal != usr1 || got[1].Signal != usr2 || got[1].Own != (i == 3) {
			t.Errorf("agent %d has received %+v, want SIGUSR1 and SIGUSR2", i, got)
		}
		s.sharing.once = 0 // it is later
	}
	j.share(sessions[6], usr1, false)
	j.share(sessions[7], mark, false)
	for i, s := range sessions {
		if got := j.received(s, mark); len(got) != 1 || got[0].Signal != usr1 {
			t.Errorf("agent %d has received %+v, want SIGUSR1", i, got)
		}
	}
	j.finish(sessions, succeeded)
}

// An agent that does not receive shared signals is not held up by them.
func TestSharedSignalsAreBounded(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 1})
	sessions := j.agents(1)
	j.worlds(sessions)
	for i := range 2 * maxShared {
		j.share(sessions[0], i, false)
	}
	j.finish(sessions, succeeded)
	var got []string
	for range maxShared {
		got = append(got, fmt.Sprint((<-sessions[0].SharedSignals()).Signal))
	}
	if !slices.Contains(got, "0") || len(sessions[0].SharedSignals()) > 0 {
		t.Errorf("%q wait, and %d more", got, len(sessions[0].SharedSignals()))
	}
}

// What counts is when agents have received signals, not when they share them.
func TestAgeOfSharedSignals(t *testing.T) {
	const usr1, mark = 10, 100
	j := start(t, LeaderConfig{Tasks: 2})
	sessions := j.agents(2)
	j.worlds(sessions)
	now := time.Now()
	for i, c := range []struct {
		age  time.Duration
		want int
	}{{ShareOnce * 3 / 2, 1}, {ShareOnce, 0}, {0, 1}} {
		s := sessions[i%2]
		if err := s.ShareSignal(j.ctx, usr1, now.Add(-c.age), false); err != nil {
			t.Fatal(err)
		}
		j.share(s, mark+i, false)
		for _, s := range sessions {
			if got := j.received(s, mark+i); len(got) != c.want {
				t.Errorf("%v ago: received %+v, want %d signals", c.age, got, c.want)
			}
		}
	}
	j.finish(sessions, succeeded)
}
