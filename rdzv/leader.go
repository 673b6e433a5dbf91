package rdzv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	rules "rdzv/rdzv/internal/job"
	"rdzv/rdzv/restart"
)

// LeaderConfig describes the job to lead. Run calls the callbacks in its own goroutine, so
// they must return soon.
type LeaderConfig struct {
	Job     string // as in Config
	Attempt int    // as in Config
	Agents  int    // number of agents of the job, required

	// MinAgents is for a job with a variable number of agents, of which Agents is the largest one: how
	// many it needs to start, and to go on after a loss; 0 is Agents. Such a job has no spares.
	MinAgents int
	// LastCall is how long such a job waits for more than MinAgents when so many have joined.
	LastCall time.Duration

	// Nodes are the names of the nodes on which the launcher starts agents, for messages; nil if
	// they are not known.
	Nodes []string

	// Unattended says that no launcher reports what has happened to agents that are missing.
	Unattended bool
	// Refused returns the agents that cannot join because their tokens differ, OtherVersion those
	// whose version of the protocol does. Both may be nil.
	Refused, OtherVersion func() []string

	// SettleTimeout is as in Config.
	SettleTimeout time.Duration
	// ExitTimeout ends the job this long after the first worker succeeded if others still
	// run; 0 is no limit.
	ExitTimeout time.Duration

	// Waiting is called while agents are missing, at times that NextWaiting determines. May be nil.
	Waiting func(Roster, time.Duration)
	// NextWaiting returns how long after Run's beginning Waiting is called next, later than last: the
	// same for the call before, or 0 at first. Required with Waiting.
	NextWaiting func(last time.Duration) time.Duration
	// Compared is called with the facts of all members when all have joined, before any worker
	// starts. strict tells whether differences are problems (Member.Strict). May be nil.
	Compared func(all []Comparison, strict bool)
	// Straggling is called once if workers still run 10 s after another one succeeded. May be nil.
	Straggling func(Stragglers)
	// Init is called 10 s, 1 min and 5 min after rank 0 has reached init_process_group if some of the
	// others have not, and then once when all have; before that, if others have been trying to connect
	// to rank 0 for so long. May be nil.
	Init func(InitProgress)
	// Check is for a job that checks its nodes and runs no workers; nil for others.
	Check *CheckConfig
	// Restarts says after which failures the agents form another attempt. The zero value is: after
	// none.
	Restarts restart.Policy
	// Spares is how many of the agents run no workers until they take over the seat of a lost one.
	Spares int
	// Replaceable says that the next attempt waits for another agent in place of one that is lost,
	// until the join timeout. Otherwise the loss of an agent ends the job.
	Replaceable bool
	// PeerTimeout is that of a store that an agent hosts, for the agents of a job with restarts. 0 in
	// other stores.
	PeerTimeout time.Duration
	// LostGrace is how long the workers of an agent that takes itself for lost may run before they are
	// killed, in a job with restarts: at most MaxLostGrace. After such a loss the next attempt starts
	// that much later, and another second.
	LostGrace time.Duration
	// Warn is called with what does not end the job, for people. May be nil.
	Warn func(error)

	stragglingAfter time.Duration   // instead of 10 s, in tests
	returnTime      time.Duration   // instead of 1 s, in tests
	initTimes       rules.InitTimes // instead of the default, in tests
}

// CheckConfig describes a job whose agents publish more about their nodes, and measure the
// connections between these before they settle. Problems end it only then.
type CheckConfig struct {
	// Gathered is called with all members, in the order of their tasks, when all have joined, or
	// those that have when the join timeout ends the job; and with their links when all have settled.
	// It returns the problems that the links show.
	Gathered func([]Member) []NodeProblem
	// Peers returns to which other nodes an agent of a node measures the connections. Nodes are
	// numbered in the order of their tasks.
	Peers func(node, nodes int) []int
}

// Leader leads a job: it watches the keys of all attempts, lets a state of package internal/job
// decide, and commits what that wants to write. The host of the store runs it on the store's own
// client, in addition to its own Session. Only Run's goroutine accesses its state.
type Leader struct {
	config  LeaderConfig
	client  *clientv3.Client
	run     runKeys
	term    term
	state   *rules.State
	writes  []rules.Write  // that follow from what was in the store at the beginning
	notices []rules.Notice // of that, too
	events  clientv3.WatchChan
	cancel  context.CancelFunc // of the watch
}

// term is what is the same for an agent that leads a job in all attempts.
type term struct {
	candidate candidate        // it leads as long as this exists; zero: it hosts the store
	lease     clientv3.LeaseID // of what it writes; 0 if it hosts the store, like the next one
	leaseTTL  time.Duration    // of the agents' own leases
	revoked   func() bool      // its own lease was revoked a short time ago; nil: never
	known     []Member         // that were in the store
}

// NewLeader returns the leader of a job for the process that hosts the store. It begins with what
// is in the store, and watches what happens from then on; Run must be called next. ctx bounds the
// call.
func NewLeader(ctx context.Context, client *clientv3.Client, c LeaderConfig) (*Leader, error) {
	if c.Job == "" || !c.valid() {
		return nil, fmt.Errorf("cannot lead job %q of %d agents, at least %d, %d of them spares", c.Job,
			c.Agents, c.MinAgents, c.Spares)
	}
	l := &Leader{config: c, client: client, run: jobKeysOf(DefaultPrefix, c.Job).only()}
	over, err := l.begin(ctx)
	if err == nil && over {
		err = ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lead job %q: %w", c.Job, err)
	}
	return l, nil
}

// valid tells whether the numbers of agents, and the grace, are possible.
func (c *LeaderConfig) valid() bool {
	return c.LostGrace >= 0 && c.LostGrace <= MaxLostGrace && c.Agents >= 1 &&
		c.Spares >= 0 && c.Spares < c.Agents && c.MinAgents >= 0 &&
		c.MinAgents <= c.Agents && (c.MinAgents == 0 || c.Spares == 0)
}

// Run leads the job, one attempt after another, until all agents have settled and form no other
// attempt; then it returns nil. If the store ends the watch it begins again with what is in the
// store. When ctx ends it returns ctx's cause. After another error the job has no leader, and the
// host of the store should close that, so that all agents learn of it.
func (l *Leader) Run(ctx context.Context) error {
	for {
		err := l.lead(ctx)
		l.cancel()
		if _, interrupted := errors.AsType[watchError](err); !interrupted {
			return err
		}
		if err = awaitReturn(ctx, &l.config); err != nil {
			return err
		}
		l.term.known = append(l.term.known, l.state.Members()...)
		before := l.state
		if over, err := l.begin(ctx); over || err != nil {
			return err
		}
		l.state.Continue(before)
	}
}

// begin reads what is in the store, and watches what happens from then on. It reports whether the
// job is over.
func (l *Leader) begin(ctx context.Context) (over bool, err error) {
	found, events, stop, err := readAndWatch(ctx, l.client, l.run.prefix)
	if err != nil {
		return false, err
	}
	snapshot := make([]rules.Change, len(found.Kvs))
	for i, kv := range found.Kvs {
		snapshot[i] = l.change(kv, true)
	}
	l.state, l.writes, l.notices = rules.Restore(time.Now(), l.rules(), snapshot, l.term.known)
	l.events, l.cancel = events, stop
	over = l.state.Over() && len(l.writes) == 0 // not by what is to be written now
	if over {
		stop()
	}
	return over, nil
}

func (l *Leader) change(kv *mvccpb.KeyValue, put bool) rules.Change {
	c := rules.Change{Key: strings.TrimPrefix(string(kv.Key), l.run.prefix), Rev: kv.ModRevision}
	if put {
		c.Value = kv.Value
	}
	return c
}

// lead applies what happens and writes what follows, until the job is over.
func (l *Leader) lead(ctx context.Context) error {
	if err := l.follow(ctx, l.writes, l.notices); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !l.state.Over() {
		timer.Stop()
		var wake <-chan time.Time
		if at := l.state.Wake(); !at.IsZero() {
			timer.Reset(time.Until(at))
			wake = timer.C
		}
		var err error
		select {
		case response, open := <-l.events:
			if !open {
				return ErrStoreLost
			}
			err = l.apply(ctx, response)
		case <-wake:
			writes, notices := l.state.Apply(time.Now())
			err = l.follow(ctx, writes, notices)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply handles what was written to the store, one revision after another.
func (l *Leader) apply(ctx context.Context, response clientv3.WatchResponse) error {
	if err := response.Err(); err != nil {
		return fmt.Errorf("cannot watch job %q: %w", l.config.Job, watchError{err})
	}
	for events := response.Events; len(events) > 0 && !l.state.Over(); {
		var changes []rules.Change
		for rev := events[0].Kv.ModRevision; len(events) > 0 && events[0].Kv.ModRevision == rev; {
			changes = append(changes, l.change(events[0].Kv, events[0].Type == clientv3.EventTypePut))
			events = events[1:]
		}
		writes, notices := l.state.Apply(time.Now(), changes...)
		if err := l.follow(ctx, writes, notices); err != nil {
			return err
		}
	}
	return nil
}

// follow calls the callbacks of the caller, and writes.
func (l *Leader) follow(ctx context.Context, writes []rules.Write, notices []rules.Notice) error {
	for _, n := range notices {
		l.tell(ctx, n)
	}
	for len(writes) > 0 {
		w := writes[0]
		writes = writes[1:]
		err := l.write(ctx, w)
		if full(err) {
			if instead, helps := l.state.Full(time.Now(), w); helps {
				writes, err = append(instead, writes...), nil
			}
		}
		if err != nil {
			return fmt.Errorf("cannot %s of job %q: %w", w.What, l.config.Job, err)
		}
	}
	return nil
}

// opsPerTxn is the maximum number of operations in a transaction of etcd.
const opsPerTxn = 128

// write commits a transaction, in parts if it is large.
func (l *Leader) write(ctx context.Context, w rules.Write) error {
	var conditions []clientv3.Cmp
	for _, c := range w.If {
		if c.Exists {
			conditions = append(conditions, present(l.run.prefix+c.Key))
		} else {
			conditions = append(conditions, absent(l.run.prefix+c.Key))
		}
	}
	for ops := range slices.Chunk(w.Ops, opsPerTxn) {
		then := make([]clientv3.Op, len(ops))
		for i, op := range ops {
			then[i] = l.op(op)
		}
		if done, err := l.commitIf(ctx, slices.Clip(conditions), then...); err != nil || !done {
			return err
		}
	}
	return nil
}

func (l *Leader) op(op rules.Op) clientv3.Op {
	key := l.run.prefix + op.Key
	switch {
	case op.Value != nil:
		return clientv3.OpPut(key, encode(op.Value), clientv3.WithLease(l.term.lease))
	case op.End != "":
		return clientv3.OpDelete(key, clientv3.WithRange(l.run.prefix+op.End))
	}
	return clientv3.OpDelete(key)
}
