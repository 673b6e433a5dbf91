package rdzv

import (
	"context"
	"testing"
	"time"
)

func TestJoinTimeout(t *testing.T) {
	t.Parallel()
	ranked := member(0)
	ranked.Tasks = []Task{{Rank: 1, LocalRank: Unknown, Slots: 1}}
	withProblem := member(0)
	withProblem.Problems = []Problem{{Kind: ProgramMissing, Text: "cannot find train.py"}}
	for name, test := range map[string]struct {
		member Member
		want   string
	}{
		"ranks": {ranked,
			"1 of 3 tasks joined; ranks 0, 2 have not started rdzv or cannot connect " +
				"(see the launcher's messages above)"},
		"no ranks":  {member(0), "1 of 3 agents joined (from node0)"},
		"a problem": {withProblem, "1 of 3 agents joined (from node0)\ncannot find train.py"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := start(t, LeaderConfig{Tasks: 3})
			s := j.joinUntil(time.Now().Add(joinTimeout), test.member)
			_, err := s.World(j.ctx)
			if v, ok := err.(*Verdict); !ok || v.Kind != Incomplete || v.Error() != test.want {
				t.Errorf("World: %v, want %q", err, test.want)
			}
			j.settle(s)
			j.leave(s)
		})
	}
}

// The earliest deadline of all agents ends the job.
func TestEarliestDeadlineApplies(t *testing.T) {
	t.Parallel()
	const never = 0
	for name, limits := range map[string][]time.Duration{
		"of the first agent": {joinTimeout, time.Hour},
		"of the last agent":  {time.Hour, joinTimeout},
		"the only one":       {never, joinTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := start(t, LeaderConfig{Tasks: 3})
			var sessions []*Session
			for i, limit := range limits {
				var deadline time.Time
				if limit != never {
					deadline = time.Now().Add(limit)
				}
				sessions = append(sessions, j.joinUntil(deadline, member(i)))
			}
			for _, s := range sessions {
				if v, ok := j.ended(s).(*Verdict); !ok || v.Kind != Incomplete {
					t.Errorf("%s: %v", s.config.Self.ID, context.Cause(s.Context()))
				}
			}
			each(sessions, func(_ int, s *Session) { j.settle(s); j.leave(s) })
		})
	}
}
