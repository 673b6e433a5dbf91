package rdzv

import (
	"strings"
	"testing"
	"time"
)

// A worker has lost its connection to a peer, and then it turns out that an agent was lost: that is
// why the job ends, on all agents.
func TestLostAgentIsTheCause(t *testing.T) {
	t.Parallel()
	held := func(d time.Duration) Worker {
		return Worker{Rank: 2, PID: 2002, Code: 1, Text: "Connection reset by peer", ReportDelay: Seconds(d)}
	}
	for name, test := range map[string]struct {
		failed Worker
		lost   int
		cause  Kind
	}{
		"an agent":                               {held(time.Second), 1, Lost},
		"the leader":                             {held(time.Second), 0, Lost},
		"the worker failed by itself":            {held(0), 1, Failed},
		"the agent renewed its lease after that": {held(time.Hour), 1, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := startPlain(t)
			all := j.leasedAgents(3, 3)
			j.worlds(all)
			j.kill(all[test.lost].config.Self.ID)
			if err := all[2].Fail(j.ctx, test.failed); err != nil {
				t.Fatal(err)
			}
			rest := []*Session{all[1-test.lost], all[2]}
			for _, s := range rest {
				if v, _ := j.ended(s).(*Verdict); v == nil || v.Kind != Failed {
					t.Errorf("%s was told %v", s.config.Self.ID, v)
				}
			}
			j.lose(all[test.lost])
			workers := []Worker{stopped(1 - test.lost), test.failed}
			for i, sum := range j.finish(rest, func(i int) Worker { return workers[i] }) {
				if v := sum.Verdict; v.Kind != test.cause || v != rest[i].Verdict() ||
					v.Kind == Lost && v.By != all[test.lost].config.Self.ID {
					t.Errorf("%s: %v", rest[i].config.Self.ID, v)
				}
			}
			j.wantNothingLeft()
		})
	}
}

// The same in a job with restarts: the attempt that follows is that after a loss, also for a leader
// that is the next one by then.
func TestLostAgentIsTheCauseOfARestart(t *testing.T) {
	t.Parallel()
	c := elastic(4)
	c.LastCall = time.Hour
	v := vary(t, startLeased, c)
	v.join(0, 1, 2, 3)
	v.world(4, map[int]int{0: 0, 1: 1, 2: 2, 3: 3})
	failed := Worker{Rank: 1, PID: 2001, Code: 1, Text: "Connection reset by peer", ReportDelay: Seconds(time.Second)}
	if err := v.sessions[1].Fail(v.ctx, failed); err != nil {
		t.Fatal(err)
	}
	v.lose(2)
	for i, s := range v.sessions {
		v.ended(s)
		v.settle(s, map[bool]Worker{true: failed, false: stopped(i)}[i == 1])
	}
	for i, s := range v.sessions {
		if sum := v.leave(s); sum.Restart == nil || sum.Verdict.Kind != Lost ||
			!strings.Contains(sum.Verdict.Error(), "the agent of rank 2 (pid 1002 on node2)") {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	v.lose(0)
	v.restart(1, 3)
	v.world(2, map[int]int{1: 0, 3: 1})
	v.warned("lost the agent of rank 0 (pid 1000 on node0)")
	v.noWarning() // of the loss that has ended the attempt
	v.end()
}
