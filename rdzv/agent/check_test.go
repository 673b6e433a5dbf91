package agent

import (
	"encoding/json"
	"testing"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/check"
)

// What an agent tells later is added to what it has told, and an agent that tells nothing is a
// problem of its node, which counts as joined.
func TestAnswersOfCheck(t *testing.T) {
	peer := func(id string) rdzv.Peer { return rdzv.Peer{ID: id, Host: "node-" + id, PID: 7, Tasks: 2} }
	value := func(v any) json.RawMessage {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	told := check.Node{
		Member:    rdzv.Member{ID: "a", Host: "node-a", Tasks: rdzv.Unplaced(1)},
		NodeFacts: []check.Fact{{Name: "kernel", Value: "6.1"}}, Rank: 3,
	}
	facts := rdzv.Question{Kind: factsQuestion, Within: time.Second}
	nodes := withAnswers(nil, facts, []rdzv.Answer{
		{Peer: peer("a"), Value: value(told)}, {Peer: peer("b"), Error: "it is too long"},
		{Peer: peer("c"), Value: json.RawMessage("[]")},
	}, []rdzv.Peer{peer("d")})
	links := rdzv.Question{Kind: linksQuestion, Within: time.Second}
	measured := check.Measured{Links: []check.Connection{{To: "b", RoundTrip: time.Second}}}
	nodes = withAnswers(nodes, links, []rdzv.Answer{{Peer: peer("a"), Value: value(measured)}}, nil)
	problems := map[string]string{
		"b": "cannot check the node: its agent has not told its facts: it is too long",
		"d": "cannot check the node: its agent has not told its facts: no answer for 1s",
	}
	for i, id := range []string{"a", "b", "c", "d"} {
		n := nodes[i]
		switch {
		case n.ID != id || n.Host != "node-"+id:
			t.Errorf("node %d is %+v, want %s", i, n, id)
		case id == "a" && (len(n.Problems) > 0 || n.Rank != 3 || len(n.NodeFacts) != 1 ||
			len(n.Links) != 1 || n.Links[0].RoundTrip != time.Second):
			t.Errorf("%+v, want its facts and its connection", n)
		case id != "a" && (len(n.Problems) != 1 || len(n.Tasks) != 2):
			t.Errorf("%+v, want one problem and two tasks", n)
		case problems[id] != "" && n.Problems[0].Text != problems[id]:
			t.Errorf("problem %q, want %q", n.Problems[0].Text, problems[id])
		}
	}
}
