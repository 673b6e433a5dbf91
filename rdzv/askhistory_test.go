package rdzv

import (
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The store does not keep what it was asked, and an agent that reconnects still learns everything.
func TestQuestionsDoNotFillTheStore(t *testing.T) {
	for range 10 { // on a busy machine an agent may be lost, see TestReconnectAfterReset
		if forgetsQuestions(t) {
			return
		}
	}
	t.Error("no agent survived the reset of its connection")
}

func forgetsQuestions(t *testing.T) (survived bool) {
	j := start(t, LeaderConfig{Tasks: 3})
	sessions := j.answering(echo, echo, echo)
	j.worlds(sessions)
	before, err := j.admin.Get(j.ctx, "none")
	if err != nil {
		t.Fatal(err)
	}
	j.ask(sessions[1], testTimeout)
	old := clientv3.WithRev(before.Header.Revision)
	_, err = j.admin.Get(j.ctx, "none", old)
	if err == nil || !strings.Contains(err.Error(), "compacted") {
		t.Errorf("a revision before the question can still be read: %v", err)
	}
	j.reset("agent-2")
	if !j.reconnects(sessions[2], 2) || sessions[2].Progress(j.ctx, nil) != nil {
		return false
	}
	j.finishWell(sessions)
	return true
}

// That does not depend on answers of all agents: after some time all have read the question.
func TestUnansweredQuestionsDoNotFillTheStore(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	client, asked := j.client("agent-1"), make(chan struct{}, 2)
	first := j.joinWith(j.admin, Config{
		Job: "test", Self: member(0), Answer: silent(asked), keepHistory: time.Millisecond,
	})
	second := j.joinWith(client, Config{Job: "test", Self: member(1), Answer: echo})
	sessions := []*Session{first, second}
	j.worlds(sessions)
	before, err := client.Get(j.ctx, "none")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, true} {
		if _, missing := j.ask(first, 100*time.Millisecond); len(missing) != 1 {
			t.Errorf("missing %q", missing)
		}
		_, err = client.Get(j.ctx, "none", clientv3.WithRev(before.Header.Revision))
		if compacted := err != nil && strings.Contains(err.Error(), "compacted"); compacted != want {
			t.Errorf("the history before the questions: %v, want it removed: %t", err, want)
		}
	}
	j.finishWell(sessions)
}
