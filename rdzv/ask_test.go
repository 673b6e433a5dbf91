package rdzv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/record"
)

type answerFunc = func(context.Context, Question) ([]byte, error)

// echo answers with the question.
func echo(_ context.Context, q Question) ([]byte, error) {
	return strconv.AppendQuote(nil, q.Kind+" "+q.Arg), nil
}

// silent does not answer until it must return; it has received the question then.
func silent(asked chan<- struct{}) answerFunc {
	return func(ctx context.Context, _ Question) ([]byte, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
}

// answering joins agents with these answers, of which the first hosts the store.
func (j *job) answering(answers ...answerFunc) []*Session {
	j.t.Helper()
	sessions := make([]*Session, len(answers))
	for i, answer := range answers {
		m := member(i)
		m.Hosting = i == 0
		client := j.admin
		if !m.Hosting {
			client = j.client(m.ID)
		}
		sessions[i] = j.joinWith(client, Config{Job: "test", Self: m, Answer: answer})
	}
	return sessions
}

// ask asks, waits for answers at most so long, and returns them in short.
func (j *job) ask(s *Session, within time.Duration) (answers, missing []string) {
	j.t.Helper()
	got, absent, err := s.Ask(j.ctx, Question{Kind: "kind", Arg: "arg", Within: within})
	if err != nil {
		j.t.Fatal(err)
	}
	for _, a := range got {
		answers = append(answers,
			fmt.Sprintf("%d %s %d %s%s", a.Seat.First(), a.Host, a.PID,
				strings.Trim(string(a.Value), `"`), a.Error))
	}
	for _, p := range absent {
		missing = append(missing, fmt.Sprintf("%d %s %d", p.Seat.First(), p.Host, p.PID))
	}
	return answers, missing
}

// noQuestions checks that no question and no answer is left in the store.
func (j *job) noQuestions(s *Session) {
	j.t.Helper()
	for _, prefix := range []string{s.keys.Question(), s.keys.Prefix + "answer/"} {
		left, err := j.admin.Get(j.ctx, prefix, clientv3.WithPrefix())
		if err != nil || len(left.Kvs) > 0 {
			j.t.Errorf("%d keys %s are left, %v", len(left.Kvs), prefix, err)
		}
	}
}

// finishWell ends the job and checks that nothing was wrong with it.
func (j *job) finishWell(sessions []*Session) {
	j.t.Helper()
	for i, sum := range j.finish(sessions, succeeded) {
		if sum.Verdict == nil || sum.Verdict.Kind != Done || !sum.Settled {
			j.t.Errorf("agent %d: %+v, verdict %v", i, sum, sum.Verdict)
		}
	}
}

func TestAskAllAgents(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 4})
	tooLarge := func(_ context.Context, q Question) ([]byte, error) {
		return jsonOf(q.Limit + 1), nil
	}
	failing := func(context.Context, Question) ([]byte, error) { return nil, errors.New("no idea") }
	sessions := j.answering(failing, echo, tooLarge, nil)
	j.worlds(sessions)
	answers, missing := j.ask(sessions[1], testTimeout)
	want := []string{
		"0 node0 1000 no idea", "1 node1 1001 kind arg",
		fmt.Sprintf("2 node2 1002 its answer has %d bytes; at most %d are allowed in this job",
			MaxAnswer+1, MaxAnswer),
		"3 node3 1003 this agent answers no questions",
	}
	if !slices.Equal(answers, want) || missing != nil {
		t.Errorf("answers %q, missing %q", answers, missing)
	}
	j.noQuestions(sessions[1])
	j.finishWell(sessions)
}

// jsonOf is JSON of so many bytes.
func jsonOf(size int) []byte { return []byte(`"` + strings.Repeat("x", size-2) + `"`) }

// largest answers with as much as it may.
func largest(_ context.Context, q Question) ([]byte, error) { return jsonOf(q.Limit), nil }

// The largest answer fits into a value of the store, which has nothing else than its text.
func TestLargestAnswer(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 1})
	sessions := j.answering(largest)
	j.worlds(sessions)
	answers, missing, err := sessions[0].Ask(j.ctx, Question{Kind: "kind"})
	if err != nil || len(answers) != 1 || len(answers[0].Value) < MaxAnswer-1000 || missing != nil {
		t.Errorf("%d answers, missing %v, %v", len(answers), missing, err)
	}
	j.finishWell(sessions)
}

// An agent that does not answer in time is named, and delays nothing but the answers.
func TestAgentThatDoesNotAnswer(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 3})
	asked := make(chan struct{}, 8)
	sessions := j.answering(echo, silent(asked), echo)
	j.worlds(sessions)
	answers, missing := j.ask(sessions[2], 200*time.Millisecond)
	want := []string{"0 node0 1000 kind arg", "2 node2 1002 kind arg"}
	if !slices.Equal(answers, want) || !slices.Equal(missing, []string{"1 node1 1001"}) {
		t.Errorf("answers %q, missing %q", answers, missing)
	}
	j.noQuestions(sessions[2])
	j.finishWell(sessions)
}

// Agents can be asked before all have joined, and after the job has ended.
func TestAskBeforeAndAfter(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	first := j.answering(echo)
	answers, missing := j.ask(first[0], testTimeout)
	if !slices.Equal(answers, []string{"-1 node0 1000 kind arg"}) || missing != nil {
		t.Errorf("before the world: answers %q, missing %q", answers, missing)
	}
	second := j.joinWith(j.client("agent-1"), Config{Job: "test", Self: member(1), Answer: echo})
	sessions := []*Session{first[0], second}
	j.worlds(sessions)
	if err := second.End(j.ctx, 15, false); err != nil {
		t.Fatal(err)
	}
	j.ended(first[0])
	if answers, _ := j.ask(second, testTimeout); len(answers) != 2 {
		t.Errorf("after the verdict: answers %q", answers)
	}
	for _, sum := range j.finish(sessions, stopped) {
		if sum.Verdict.Kind != Ended || !sum.Settled {
			t.Errorf("%+v", sum)
		}
	}
}

// A question that is not needed any more leaves nothing behind.
func TestAskEndsWithItsContext(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 1})
	asked := make(chan struct{}, 1)
	sessions := j.answering(silent(asked))
	j.worlds(sessions)
	ctx, cancel := context.WithCancelCause(j.ctx)
	enough := errors.New("enough")
	go func() { <-asked; cancel(enough) }()
	if _, _, err := sessions[0].Ask(ctx, Question{Kind: "kind"}); !errors.Is(err, enough) {
		t.Errorf("Ask: %v", err)
	}
	j.noQuestions(sessions[0])
	j.finishWell(sessions)
}

func TestAskWithoutStore(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	asked := make(chan struct{}, 1)
	sessions := j.answering(echo, silent(asked))
	j.worlds(sessions)
	failed := make(chan error, 1)
	go func() {
		_, _, err := sessions[1].Ask(j.ctx, Question{Kind: "kind"})
		failed <- err
	}()
	<-asked
	j.close()
	within5s(t, "Ask", func() {
		if err := <-failed; !errors.Is(err, ErrStoreLost) {
			t.Errorf("Ask: %v", err)
		}
	})
}

// A question that no agent would write has no effect.
func TestInvalidQuestionIsIgnored(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	sessions := j.answering(echo, echo)
	j.worlds(sessions)
	for name, b := range bad {
		j.put(sessions[0].keys.Question(), b.value)
		if answers, missing := j.ask(sessions[1], testTimeout); len(answers) != 2 || missing != nil {
			t.Errorf("%s: answers %q, missing %q", name, answers, missing)
		}
	}
	j.finishWell(sessions)
}

// Asking costs each further agent the same, and the leader's work does not depend on it.
func TestCostOfAskGrowsLinearlyWithAgents(t *testing.T) {
	cost := func(agents int) int {
		j := start(t, LeaderConfig{Tasks: agents})
		sessions := j.answering(slices.Repeat([]answerFunc{echo}, agents)...)
		j.worlds(sessions)
		before := j.bytes.Load()
		answers, missing := j.ask(sessions[1], testTimeout)
		if len(answers) != agents || missing != nil {
			t.Errorf("%d agents: %d answers, missing %q", agents, len(answers), missing)
		}
		bytes := int(j.bytes.Load() - before)
		j.finishWell(sessions)
		return bytes
	}
	few, some, many := cost(8), cost(40), cost(168)
	first, second := (some-few)/(40-8), (many-some)/(168-40)
	t.Logf("bytes per additional agent: %d up to 40 agents, %d up to 168", first, second)
	if second > first*3/2 { // if all agents read all answers it would be more than four times as much
		t.Errorf("an additional agent costs %d bytes up to 40 agents, but %d up to 168",
			first, second)
	}
}

// An answer that takes for ever does not keep its agent from leaving.
func TestLeaveWhileAnswering(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	asked := make(chan struct{}, 2)
	sessions := j.answering(silent(asked), silent(asked))
	j.worlds(sessions)
	value := record.Encode(Question{Kind: "kind", Within: time.Hour, Limit: MaxAnswer})
	j.put(sessions[0].keys.Question(), value)
	<-asked
	<-asked
	within5s(t, "the end of the job", func() { j.finishWell(sessions) })
}
