package job

import (
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

// Each verdict that is wanted is written once, and the first one in the store counts.
func TestFirstVerdict(t *testing.T) {
	var e ending
	e.want(record.NotReady("first"))
	e.want(record.NotReady("second"), absent("x"))
	call := &turn{now: base}
	e.write(call, run.Attempt(0))
	e.write(call, run.Attempt(0))
	if len(call.writes) != 2 || len(call.writes[0].If) != 1 || len(call.writes[1].If) != 2 {
		t.Errorf("%v, want two with their conditions", call.writes)
	}
	if !e.take(base, record.NotReady("of another agent"), base.Add(time.Second)) {
		t.Error("the verdict is not the first one")
	}
	e.want(record.NotReady("third"))
	if e.take(base, []byte("{"), base) || e.verdict.Text != "of another agent" || len(e.wanted) > 0 {
		t.Errorf("%v, wanted %v", e.verdict, e.wanted)
	}
	var unreadable ending
	if unreadable.take(base, []byte("{"), base); unreadable.verdict.Kind != record.Unready {
		t.Errorf("a verdict that cannot be read: %v", unreadable.verdict)
	}
}

// A worker that has lost a connection fails after the agent that is the reason.
func TestLostBefore(t *testing.T) {
	const within = 3 * time.Second
	lostAfter := func(d time.Duration) *member {
		return &member{Member: joinedAgent(int(d.Seconds())), lost: true, lostAt: base.Add(d)}
	}
	all := []*member{lostAfter(2 * time.Second), lostAfter(time.Second), {Member: joinedAgent(9)}}
	for want, c := range map[string]struct {
		all   []*member
		delay time.Duration
	}{
		"agent-1": {all, time.Second},
		"":        {all, 0}, // it has not waited for that, because it has lost no connection
		"none":    {[]*member{lostAfter(5 * time.Second)}, time.Second},
	} {
		e := ending{verdict: &record.Verdict{Kind: record.Failed, ReportDelay: record.Seconds(c.delay)}, verdictAt: base}
		first := e.lostBefore(c.all, within)
		if got := want == "agent-1"; (first != nil) != got || got && first.ID != want {
			t.Errorf("%v, want %q", first, want)
		}
	}
}
