package integration

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/stacks"
)

// deepestStacks answers with the stacks of a node whose ranks have the most and the longest calls
// that an agent keeps, as far as they fit.
func deepestStacks() func(context.Context, rdzv.Question) ([]byte, error) {
	var mu sync.Mutex
	byLimit := map[int][]byte{}
	return func(_ context.Context, q rdzv.Question) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if text, known := byLimit[q.Limit]; known {
			return text, nil
		}
		n := stacks.Node{Host: "node", Ranks: 16}
		for rank := range 16 {
			w := stacks.Worker{Rank: rank, PID: 4000, Main: stacks.Thread{Does: "waiting"}}
			for range 64 {
				w.Python = append(w.Python, strings.Repeat("x", 200))
			}
			n.Workers = append(n.Workers, w)
		}
		n.Fit(q.Limit)
		text, err := json.Marshal(n)
		byLimit[q.Limit] = text
		return text, err
	}
}

// The stacks of 2,000 agents leave room in the store for the verdict, and for all outcomes.
func TestStacksOfManyAgents(t *testing.T) {
	const agents = 2000
	// All agents share the cores of one machine, which may be busy with the answers for longer than
	// the default.
	const silent = time.Minute
	s := scaleJob{"plain", "fail"}.start(t, agents, "--peer-timeout", silent.String())
	s.answer, s.silent = deepestStacks(), silent
	s.joinAll()
	began := time.Now()
	var answers []rdzv.Answer
	var missing []rdzv.Peer
	var err error
	busy := func() bool { return err != nil && strings.HasSuffix(err.Error(), "has not answered for 3s") }
	for range 10 {
		if answers, missing, err = s.agents[0].session.Ask(s.ctx, rdzv.Question{
			Within: 2 * time.Minute,
		}); !busy() {
			break
		}
	}
	size := 0
	for _, a := range answers {
		size += len(a.Value)
	}
	t.Logf("%d answers with %d MB took %v", len(answers), size>>20, time.Since(began))
	if err != nil || len(answers) != agents+1 || size < rdzv.MaxAnswers/2 {
		t.Errorf("%d answers, missing %v, %v", len(answers), missing, err)
	}
	began = time.Now()
	s.finish()
	s.host.checkCode(1)
	for _, a := range s.agents {
		if took := a.verdict.Sub(began); took > waitLimit {
			t.Errorf("agent %d had the verdict after %v", a.id, took)
		}
	}
}
