package rdzv

import (
	"fmt"
	"strings"
	"testing"

	"rdzv/rdzv/internal/record"
)

// Problems that agents have found together end the job for all of them, cut to what people read.
func TestRefuse(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	sessions := j.agents(2)
	j.worlds(sessions)
	var problems []NodeProblem
	for i := range 10 {
		p := NodeProblem{Problem: Problem{
			Kind: OtherProblem, Text: fmt.Sprint(i, strings.Repeat("x", 2*record.MaxText)),
		}}
		for k := range 10 {
			p.Hosts = append(p.Hosts, fmt.Sprintf("node%d", k))
		}
		problems = append(problems, p)
	}
	if err := sessions[1].Refuse(j.ctx, problems); err != nil {
		t.Fatal(err)
	}
	each(sessions, func(i int, s *Session) {
		j.settle(s)
		v := j.leave(s).Verdict
		if v.Kind != Unready || len(v.Problems) != record.MaxShown || v.MoreProblems != 2 ||
			v.Problems[0].MoreHosts != 2 || len(v.Problems[7].Text) > record.MaxText {
			t.Errorf("agent %d: verdict %+v", i, v)
		}
	})
	if len(problems[0].Hosts) != 10 {
		t.Errorf("the caller's problem has %d hosts now", len(problems[0].Hosts))
	}
}
