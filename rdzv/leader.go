package rdzv

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// LeaderConfig says what job to lead. The callbacks are called by Run's
// goroutine, which does nothing else meanwhile: they must return soon.
type LeaderConfig struct {
	Job     string
	Attempt int
	// Agents is how many agents the job has.
	Agents int
	// SettleTimeout is as in Config.
	SettleTimeout time.Duration
	// ExitTimeout ends the job this long after its first worker ended well, if
	// others still run; 0 lets them.
	ExitTimeout time.Duration
	// straggleNotice is how long after the first worker ended well Straggling is
	// told of those that still run; default 10 s.
	straggleNotice time.Duration

	// Lost gives the ids of agents that went without a word. Nil: none can.
	Lost <-chan string
	// Waiting is told every few seconds who is there while somebody is missing.
	// May be nil.
	Waiting func(Roster)
	// Straggling is told once who still runs. May be nil.
	Straggling func(Stragglers)
}

const defaultStraggleNotice = 10 * time.Second

// waitingPeriod is how often Waiting is told.
const waitingPeriod = 5 * time.Second

// Leader gathers the members of a job, seats them, and at the end says when all
// have settled. The host of the store runs one, on the store's own client,
// beside its own Join. Only Run's goroutine touches its state.
type Leader struct {
	config LeaderConfig
	client *clientv3.Client
	keys   keys
	events clientv3.WatchChan
	cancel context.CancelFunc // of the watch

	members   map[string]*memberState // by id
	joined    []*memberState          // in the order of the store
	lostEarly map[string]bool         // ids that were lost before their member was seen
	complete  bool                    // all agents are here
	pending   int                     // agents that have neither settled nor been lost

	verdict    *Verdict
	outcomes   []Outcome // in the order of the store
	straggling straggling

	joinDeadline               time.Time        // the first deadline of a member; zero if none has one
	joinTimeout, settleTimeout <-chan time.Time // nil where there is no limit
	settleTimedOut             bool             // settleTimeout is past
}

// memberState is what the leader knows of one.
type memberState struct {
	Member
	seat    Seat
	settled bool
	lost    bool
	ended   []Worker // while others of its workers run
}

// NewLeader starts to watch the job; Run must follow. It must have returned
// before the first agent can reach the store: what came before is not seen. ctx
// bounds the call.
func NewLeader(ctx context.Context, client *clientv3.Client, c LeaderConfig) (*Leader, error) {
	if c.Job == "" || c.Agents < 1 {
		return nil, fmt.Errorf("cannot lead job %q of %d agents", c.Job, c.Agents)
	}
	if c.SettleTimeout == 0 {
		c.SettleTimeout = defaultSettleTimeout
	}
	if c.straggleNotice == 0 {
		c.straggleNotice = defaultStraggleNotice
	}
	l := &Leader{config: c, client: client, keys: keysOf(c.Job, c.Attempt), members: map[string]*memberState{}, lostEarly: map[string]bool{}}
	// One watch over the whole attempt keeps members, outcomes and the verdict in
	// the one order that all agents see.
	var err error
	if l.events, l.cancel, err = watch(ctx, client, l.keys.prefix); err != nil {
		return nil, fmt.Errorf("cannot watch job %q: %w", c.Job, err)
	}
	return l, nil
}

// Run leads the job until all have settled; then it returns nil. It returns ctx's
// cause when ctx ends, and another error when the store fails it: then nobody
// leads, and the host should close the store, which tells all.
func (l *Leader) Run(ctx context.Context) error {
	defer l.cancel()
	waiting := time.NewTicker(waitingPeriod)
	defer waiting.Stop()
	for l.verdict == nil || l.pending > 0 && !l.settleTimedOut {
		if err := l.step(ctx, waiting.C); err != nil {
			return err
		}
	}
	return l.writeSettled(ctx)
}

// step takes in the next thing that happens.
func (l *Leader) step(ctx context.Context, waiting <-chan time.Time) error {
	select {
	case response, open := <-l.events:
		if !open {
			return ErrStoreLost
		}
		return l.apply(ctx, response)
	case id := <-l.config.Lost:
		return l.markLost(ctx, id)
	case <-l.joinTimeout:
		return l.joinTimedOut(ctx)
	case <-waiting:
		l.reportWaiting()
	case <-l.straggling.notice:
		l.reportStragglers()
	case <-l.straggling.limit:
		return l.stopStragglers(ctx)
	case <-l.settleTimeout:
		l.settleTimedOut = true
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// take takes in what the store says.
func (l *Leader) apply(ctx context.Context, response clientv3.WatchResponse) error {
	if err := response.Err(); err != nil {
		return fmt.Errorf("cannot watch job %q: %w", l.config.Job, err)
	}
	for _, e := range response.Events {
		if e.Type != clientv3.EventTypePut {
			continue
		}
		if err := l.applyEvent(ctx, string(e.Kv.Key), e.Kv.Value); err != nil {
			return err
		}
	}
	return nil
}

func (l *Leader) applyEvent(ctx context.Context, key string, value []byte) error {
	if id, ok := strings.CutPrefix(key, l.keys.members()); ok {
		return l.admit(ctx, id, value)
	}
	if id, ok := strings.CutPrefix(key, l.keys.outcomes()); ok {
		return l.readOutcome(ctx, id, value)
	}
	if id, ok := strings.CutPrefix(key, l.keys.progresses()); ok {
		l.readProgress(id, value)
	}
	if key == l.keys.verdict() && l.verdict == nil {
		l.readVerdict(value)
	}
	return nil
}

// readVerdict takes in the verdict. One that cannot be read is one all the same: nobody
// else can read it either, so that all stop their workers.
func (l *Leader) readVerdict(value []byte) {
	v, err := decode[Verdict](value)
	if err != nil {
		v = unready(fmt.Sprintf("cannot read the verdict: %v", err))
	}
	l.verdict = &v
	l.settleTimeout = time.After(l.config.SettleTimeout)
}

// writeVerdict writes the verdict unless there is one, or a key exists that makes it
// wrong; the watch brings back which held.
func (l *Leader) writeVerdict(ctx context.Context, v Verdict, but ...string) error {
	if l.verdict != nil {
		return nil
	}
	_, err := writeVerdict(ctx, l.client, l.keys, v, but...)
	return err
}
