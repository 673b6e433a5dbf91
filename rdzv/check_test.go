package rdzv

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

// The leader has the facts of all nodes in the order of the ranks when all have joined, and those
// of the agents that have joined when the others are too late.
func TestGathered(t *testing.T) {
	for _, agents := range []int{2, 3} {
		gathered := make(chan []Member, 2)
		j := start(t, LeaderConfig{Tasks: agents, Check: &CheckConfig{
			Gathered: func(all []Member) []NodeProblem { gathered <- all; return nil },
			Peers:    func(int, int) []int { return nil },
		}})
		sessions := make([]*Session, 2)
		for _, rank := range []int{1, 0} {
			m := member(rank)
			m.Hosting = rank == 0
			m.NodeFacts = []NodeFact{{Name: "kernel", Value: strings.Repeat("é", record.MaxFactValue)}}
			if agents == 3 && rank == 0 {
				sessions[rank] = j.joinUntil(time.Now().Add(100*time.Millisecond), m)
				continue
			}
			sessions[rank] = j.join(m)
		}
		_, err := sessions[1].World(j.ctx)
		if (err == nil) != (agents == 2) {
			t.Errorf("%d agents: World returned %v", agents, err)
		}
		all := <-gathered
		var hosts []string
		for _, m := range all {
			hosts = append(hosts, m.Host)
			if len(m.NodeFacts) != 1 || len(m.NodeFacts[0].Value) > record.MaxFactValue {
				t.Errorf("facts %+v", m.NodeFacts)
			}
		}
		if !slices.Equal(hosts, []string{"node0", "node1"}) {
			t.Errorf("gathered the members of %q", hosts)
		}
		each(sessions, func(i int, s *Session) { j.settle(s); j.leave(s) })
	}
}

// In a job that checks its nodes an agent of each node that answers gets peers, problems do not
// keep the agents from measuring, and the leader gets what they have measured before the job ends.
func TestLinks(t *testing.T) {
	gathered := make(chan []Member, 2)
	refused := Problem{Kind: OtherProblem, Text: "cannot connect"}
	j := start(t, LeaderConfig{Tasks: 4, Check: &CheckConfig{
		Gathered: func(all []Member) []NodeProblem {
			gathered <- all
			if all[0].Links == nil {
				return nil
			}
			return []NodeProblem{{Problem: refused, Hosts: slices.Repeat([]string{"node0"}, 10)}}
		},
		Peers: func(node, nodes int) []int { return []int{(node + 1) % nodes} },
	}})
	missing := Problem{Kind: ProgramMissing, Text: "cannot start"}
	var sessions []*Session
	for i := range 4 { // agents 0 and 1 are on the first of three nodes, the store is on the last
		m := member(i)
		m.Node, m.Hosting = m.Host, i == 3
		m.Tasks, m.LocalSize, m.NodeRank = ranked(i, 0), 1, max(i-1, 0)
		switch i {
		case 3:
			m.Answers = "[::]:7"
		case 0:
			m.Problems = []Problem{missing}
		case 1:
			m.Node, m.Tasks = "node0", ranked(i, 1)
			fallthrough
		default:
			m.Answers, m.StoreAddr = fmt.Sprintf("10.0.0.%d:1", i), fmt.Sprintf("10.1.0.%d", i)
		}
		sessions = append(sessions, j.join(m))
	}
	var peers [][]Endpoint
	for _, w := range j.worlds(sessions) {
		peers = append(peers, w.Peers)
	}
	want := [][]Endpoint{nil, {{ID: "agent-2", Addr: "10.0.0.2:1"}}, {{ID: "agent-3", Addr: "10.1.0.2:7"}},
		{{ID: "agent-1", Addr: "10.0.0.1:1"}}}
	if !reflect.DeepEqual(peers, want) {
		t.Errorf("peers %v, want %v", peers, want)
	}
	each(sessions, func(i int, s *Session) {
		link := Link{To: "agent-3", RoundTrip: time.Second, Error: strings.Repeat("x", 2*record.MaxText)}
		if err := s.Settle(j.ctx, nil, link); err != nil {
			t.Error(err)
		}
		v := j.leave(s).Verdict
		if v.Kind != Unready || len(v.Problems) != 2 || v.Problems[0].Problem != missing ||
			v.Problems[1].Problem != refused || v.Problems[1].MoreHosts != 2 {
			t.Errorf("verdict %+v, want two problems", v)
		}
	})
	<-gathered
	for _, m := range <-gathered {
		if len(m.Links) != 1 || m.Links[0].To != "agent-3" || len(m.Links[0].Error) > record.MaxFactValue {
			t.Errorf("%s: links %+v", m.ID, m.Links)
		}
	}
}

// A check that a signal ends has the signal's exit code, whichever agents have settled, and no
// links: those that were being measured could not be.
func TestCheckIsInterrupted(t *testing.T) {
	calls := make(chan []Member, 2)
	j := start(t, LeaderConfig{Tasks: 2, Check: &CheckConfig{
		Gathered: func(all []Member) []NodeProblem { calls <- all; return nil },
		Peers:    func(int, int) []int { return nil },
	}})
	sessions := j.agents(2)
	j.worlds(sessions)
	j.settle(sessions[0])
	if err := sessions[1].End(j.ctx, 15, false); err != nil {
		t.Fatal(err)
	}
	j.settle(sessions[1])
	each(sessions, func(i int, s *Session) {
		if sum := j.leave(s); sum.Verdict.Kind != Ended || sum.Code != 128+15 {
			t.Errorf("agent %d: verdict %v, code %d", i, sum.Verdict, sum.Code)
		}
	})
	if len(calls) != 1 {
		t.Errorf("Gathered was called %d times", len(calls))
	}
}
