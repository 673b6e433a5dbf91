package rdzv

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// LeaderConfig says what job to lead.
type LeaderConfig struct {
	Job     string
	Attempt int
	// Agents is how many agents the job has.
	Agents int
	// JoinTimeout is how long to wait for all of them; 0 waits for ever.
	JoinTimeout time.Duration
	// SettleTimeout is as in Config.
	SettleTimeout time.Duration
	// Lost gives the ids of agents that went without a word. Nil: none can.
	Lost <-chan string
	// Waiting is told every few seconds who is there while somebody is missing.
	// It must return soon. May be nil.
	Waiting func(Roster)
}

// waitingPeriod is how often Waiting is told.
const waitingPeriod = 5 * time.Second

// seatsPerTxn is the most operations that etcd takes in one transaction.
const seatsPerTxn = 128

// Leader gathers the members of a job, seats them, and at the end says when all
// have settled. The host of the store runs one, on the store's own client,
// beside its own Join. Only Run's goroutine touches its state.
type Leader struct {
	config LeaderConfig
	client *clientv3.Client
	keys   keys
	events clientv3.WatchChan
	cancel context.CancelFunc // of the watch

	members []Member       // in the order of the store
	byID    map[string]int // index in members
	seats   map[string]Seat
	begun   bool // all members are here

	verdict  *Verdict
	outcomes []Outcome       // in the order of the store
	settled  map[string]bool // ids whose outcome is in
	lost     map[string]bool // ids that went without a word
}

// NewLeader starts to watch the job. It must have returned before the first
// agent can reach the store: what came before is not seen. ctx bounds the call.
func NewLeader(ctx context.Context, client *clientv3.Client, c LeaderConfig) (*Leader, error) {
	if c.SettleTimeout == 0 {
		c.SettleTimeout = defaultSettleTimeout
	}
	l := &Leader{config: c, client: client, keys: keysOf(c.Job, c.Attempt), byID: map[string]int{}, settled: map[string]bool{}, lost: map[string]bool{}}
	watching, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	// One watch over the whole attempt keeps members, outcomes and the verdict in
	// the one order that all agents see.
	l.events = client.Watch(watching, l.keys.prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if err := created(ctx, l.events); err != nil {
		cancel()
		return nil, fmt.Errorf("cannot watch job %q: %w", c.Job, err)
	}
	return l, nil
}

// Run leads the job until all have settled; then it returns. It returns early
// when ctx ends, and with an error when the store fails it.
func (l *Leader) Run(ctx context.Context) error {
	defer l.cancel()
	joinTimeout, settleTimeout := timer(l.config.JoinTimeout), timer(0)
	defer joinTimeout.Stop()
	defer settleTimeout.Stop()
	waiting := time.NewTicker(waitingPeriod)
	defer waiting.Stop()
	for {
		var err error
		ended := l.verdict != nil
		select {
		case response := <-l.events:
			err = l.take(ctx, response)
		case id := <-l.config.Lost:
			err = l.lose(ctx, id)
		case <-joinTimeout.C:
			err = l.giveUp(ctx)
		case <-waiting.C:
			l.tellWaiting()
		case <-settleTimeout.C:
			return l.finish(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch {
		case err != nil:
			return err
		case l.verdict != nil && l.unsettled() == 0:
			return l.finish(ctx)
		case l.verdict != nil && !ended:
			settleTimeout.Reset(l.config.SettleTimeout)
		}
	}
}

// timer fires after d, or never for 0 unless it is reset.
func timer(d time.Duration) *time.Timer {
	t := time.NewTimer(max(d, time.Hour))
	t.Stop()
	if d > 0 {
		t.Reset(d)
	}
	return t
}

// take takes in what the store says.
func (l *Leader) take(ctx context.Context, response clientv3.WatchResponse) error {
	if err := response.Err(); err != nil {
		return fmt.Errorf("cannot follow job %q: %w", l.config.Job, err)
	}
	for _, e := range response.Events {
		if err := l.event(ctx, string(e.Kv.Key), e.Kv.Value); err != nil {
			return err
		}
	}
	return nil
}

func (l *Leader) event(ctx context.Context, key string, value []byte) error {
	if id, ok := strings.CutPrefix(key, l.keys.members()); ok {
		return l.arrive(ctx, id, key, value)
	}
	if id, ok := strings.CutPrefix(key, l.keys.outcomes()); ok {
		return l.settle(ctx, id, key, value)
	}
	if key == l.keys.verdict() && l.verdict == nil {
		v, err := decode[Verdict](key, value)
		if err != nil {
			return err
		}
		l.verdict = &v
	}
	return nil
}

// lose takes in that an agent is gone. It matters only while it had not settled.
func (l *Leader) lose(ctx context.Context, id string) error {
	if l.settled[id] {
		return nil
	}
	l.lost[id] = true
	i, known := l.byID[id]
	if !known { // it had come in and not even said what it was
		return l.say(ctx, Verdict{Kind: Lost, By: id, Rank: Any, LocalRank: Any, Text: "lost an agent that had just come in: it went without a word"})
	}
	return l.say(ctx, l.lossOf(l.members[i]))
}

// say writes the verdict unless there is one; the watch brings back which held.
func (l *Leader) say(ctx context.Context, v Verdict) error {
	if l.verdict != nil {
		return nil
	}
	return propose(ctx, l.client, l.keys, v)
}

// unsettled counts the members that have still to settle.
func (l *Leader) unsettled() int {
	n := 0
	for _, m := range l.members {
		if !l.settled[m.ID] && !l.lost[m.ID] {
			n++
		}
	}
	return n
}

// finish tells all that there is nothing more to wait for.
func (l *Leader) finish(ctx context.Context) error {
	s := settlement{Unsettled: l.unsettled()}
	if l.verdict.Kind == Ended {
		s.Code = endedCode(l.verdict.Signal, l.outcomes)
	}
	if _, err := l.client.Put(ctx, l.keys.gone(), encode(s)); err != nil {
		return fmt.Errorf("cannot tell job %q that all have settled: %w", l.config.Job, err)
	}
	return nil
}
