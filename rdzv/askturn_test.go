package rdzv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"rdzv/rdzv/internal/keys"
)

// One question is answered at a time. Another one waits, and then says for which one.
func TestQuestionsWaitForEachOther(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	asked := make(chan struct{}, 4)
	sessions := j.answering(echo, silent(asked))
	j.worlds(sessions)
	for i, within := range []time.Duration{time.Second, time.Minute} {
		busy := i == 1
		first := make(chan error, 1)
		go func() {
			_, _, err := sessions[1].Ask(j.ctx, Question{Kind: "slow", Within: within})
			first <- err
		}()
		<-asked
		_, _, err := sessions[0].Ask(j.ctx, Question{Kind: "kind", Within: time.Millisecond})
		other, is := errors.AsType[*BusyError](err)
		if is != busy || !busy && err != nil {
			t.Errorf("while another question waits for %v for its answers: %v", within, err)
		}
		if !busy {
			<-asked
			if err := <-first; err != nil {
				t.Error(err)
			}
			continue
		}
		if other.Kind != "slow" || other.Asker.Host != "node1" || other.Asker.PID != 1001 {
			t.Errorf("the other question is %+v", other)
		}
		const want = `cannot ask the agents of job "test": another question (slow), from the agent on ` +
			`node1 (pid 1001), has been waiting for its answers for 3s`
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// A question whose answers might fill the store, in which others are still, is not asked: there is
// always room for the verdict.
func TestQuestionsLeaveRoomForTheVerdict(t *testing.T) {
	t.Parallel()
	const more = 4 << 20
	j := startConfigured(t, LeaderConfig{}, func(c *embed.Config) {
		c.TickMs, c.ElectionMs = 10, 100
		c.QuotaBackendBytes = 2*MaxAnswers + more
	})
	sessions := j.leasedAgents(2, 2)
	j.worlds(sessions)
	question := Question{Kind: "kind", Within: time.Millisecond}
	if _, _, err := sessions[0].Ask(j.ctx, question); err != nil {
		t.Errorf("an empty store has no room for answers: %v", err)
	}
	for i := range 5 {
		answer := strings.Repeat("x", 1<<20)
		if _, err := j.admin.Put(j.ctx, fmt.Sprint("answer/", i), answer); err != nil {
			t.Fatal(err)
		}
	}
	for used := int64(0); used <= more && j.ctx.Err() == nil; { // etcd counts when it commits
		if s, err := j.admin.Status(j.ctx, j.admin.Endpoints()[0]); err == nil {
			used = s.DbSizeInUse
		}
	}
	_, _, err := sessions[0].Ask(j.ctx, question)
	const full = " of the 132 MB of the store are in use, perhaps by answers to earlier questions"
	if err == nil || !strings.Contains(err.Error(), full) {
		t.Errorf("the question has the error %v, want that%s", err, full)
	}
	if err := sessions[0].Fail(j.ctx, Worker{Rank: 0, Code: 7}); err != nil {
		t.Errorf("the store does not accept the verdict: %v", err)
	}
	if v, ok := errors.AsType[*Verdict](j.ended(sessions[1])); !ok || v.Code != 7 {
		t.Errorf("agent 1 has the verdict %v", v)
	}
	j.finish(sessions, stopped)
}

// What agents have answered is not lost if the store does not respond any more when the time is
// over. Then nobody knows who the others are.
func TestAnswersBeforeTheStoreIsSilent(t *testing.T) {
	t.Parallel()
	j := start(t, LeaderConfig{Tasks: 3})
	asked, put := make(chan struct{}, 1), make(chan struct{}, 1)
	sessions := j.answering(echo)
	for i, answer := range []answerFunc{echo, silent(asked)} {
		m := member(1 + i)
		client := j.client(m.ID)
		client.KV = asking{client.KV, put} // only agent 1 asks
		sessions = append(sessions, j.joinWith(client, Config{Job: "test", Self: m, Answer: answer}))
	}
	j.worlds(sessions)
	go func() {
		<-asked
		j.awaitAnswers(sessions[1].keys.Prefix+"answer/", 2)
		if err := sessions[0].Fail(j.ctx, Worker{Rank: 0, Code: 7}); err == nil {
			j.ended(sessions[1]) // it learns of that after the answers
		}
		select {
		case <-put: // perhaps later than what follows from it
			j.freeze("agent-1")
		case <-j.ctx.Done():
		}
	}()
	q := Question{Kind: "kind", Within: 5 * time.Second}
	answers, missing, err := sessions[1].Ask(j.ctx, q)
	if err != nil || len(answers) != 2 || len(missing) != 1 || missing[0].ID != "agent-2" {
		t.Errorf("answers %v, missing %v, %v", answers, missing, err)
	}
}

// asking are an agent's calls of the store. It says when the one has returned that puts a question.
type asking struct {
	clientv3.KV
	put chan<- struct{}
}

func (a asking) Txn(ctx context.Context) clientv3.Txn {
	return &askingTxn{Txn: a.KV.Txn(ctx), put: a.put}
}

type askingTxn struct {
	clientv3.Txn
	put  chan<- struct{}
	asks bool
}

func (x *askingTxn) If(all ...clientv3.Cmp) clientv3.Txn  { x.Txn.If(all...); return x }
func (x *askingTxn) Else(all ...clientv3.Op) clientv3.Txn { x.Txn.Else(all...); return x }

func (x *askingTxn) Then(all ...clientv3.Op) clientv3.Txn {
	x.asks = slices.ContainsFunc(all, func(op clientv3.Op) bool {
		return op.IsPut() && strings.HasSuffix(string(op.KeyBytes()), "/"+keys.Question)
	})
	x.Txn.Then(all...)
	return x
}

func (x *askingTxn) Commit() (*clientv3.TxnResponse, error) {
	response, err := x.Txn.Commit()
	if x.asks && err == nil {
		x.put <- struct{}{}
	}
	return response, err
}

// awaitAnswers waits until there are so many keys with a prefix.
func (j *job) awaitAnswers(prefix string, n int64) {
	for {
		found, err := j.admin.Get(j.ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || found.Count == n {
			return
		}
	}
}

// The question of an agent that dies does not keep others from asking for long.
func TestQuestionOfLostAgent(t *testing.T) {
	t.Parallel()
	j := start(t, LeaderConfig{Tasks: 2})
	asked := make(chan struct{}, 1)
	sessions := j.answering(silent(asked), echo)
	j.worlds(sessions)
	dying := make(chan error, 1)
	go func() {
		_, _, err := sessions[1].Ask(j.ctx, Question{Kind: "last", Within: time.Second})
		dying <- err
	}()
	<-asked
	j.kill("agent-1")
	if err := <-dying; err == nil {
		t.Error("an agent without the store has got answers")
	}
	for {
		_, _, err := sessions[0].Ask(j.ctx, Question{Kind: "kind", Within: time.Millisecond})
		if err == nil {
			return
		}
		if _, busy := errors.AsType[*BusyError](err); !busy {
			t.Fatal(err)
		}
		t.Log(err)
	}
}
