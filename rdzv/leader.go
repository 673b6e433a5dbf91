package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

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

	stragglingAfter time.Duration // instead of 10 s, in tests
	returnTime      time.Duration // instead of 1 s, in tests
	initTimes       initTimes     // instead of the default, in tests
}

const defaultStragglingAfter = 10 * time.Second

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

// Leader gathers the members of a job, assigns their seats, and at the end publishes that
// all have settled. The host of the store runs it on the store's own client, in addition to
// its own Session. Only Run's goroutine accesses its state.
type Leader struct {
	config LeaderConfig
	client *clientv3.Client
	keys   keys
	events clientv3.WatchChan
	cancel context.CancelFunc // of the watch, which is over the keys of all attempts

	term     term
	missing  []missing        // they may register again
	returned <-chan time.Time // when those that are still gone are lost

	members   map[string]*memberState // by ID
	joined    []*memberState          // in the order of the store
	unseated  []Member                // that joined this attempt when it had no place for them
	gone      map[string]bool         // IDs of agents that are lost, whose members may come later
	strangers []string                // hosts of agents of another version, see readStranger
	preparing map[string]preparing    // agents that have announced themselves, and are not members yet
	here      int                     // number of members that joined this attempt
	launched  bool                    // members are tasks of a launcher
	complete  bool                    // all agents have joined
	exports   *Exports                // of rank 0's agent, nil if there are none
	unready   int                     // number of members that have yet to confirm that they can start
	pending   int                     // number of members to wait for: neither settled nor lost
	found     Verdict                 // with whose problems a job with Check ends

	previous keys              // of the previous attempt; zero if this is the first one
	failures []restart.Failure // of all attempts before
	began    time.Time         // when the first world was published
	agreed   time.Time         // when the world of this attempt was published

	verdict      *Verdict
	verdictAt    time.Time // when it was read
	cause        *Verdict  // replaces the one in the store; nil if that is right
	outcomes     []Outcome // in the order of the store
	successes    []success
	firstSuccess *Worker // the first worker that succeeded
	init         initWatch

	begin         time.Time        // of Run
	lastCall      <-chan time.Time // when an elastic job starts; nil while too few have joined
	called        bool             // the last call is over
	waited        time.Duration    // between begin and the next call of Waiting
	waiting       <-chan time.Time // when to call Waiting; nil if nobody listens
	joinDeadline  time.Time        // the earliest of all members; zero if none has one
	joinTimeout   <-chan time.Time // nil without a limit
	startAt       time.Time        // not before this are the workers started
	clearAt       time.Time        // nor before this: until then workers of lost agents may run
	startTime     <-chan time.Time // nil unless all have joined before startAt
	reportTime    <-chan time.Time // when to report stragglers; nil before the first success
	exitTimeout   <-chan time.Time // nil without a limit or before the first success
	settleTimeout <-chan time.Time // nil before the verdict
}

// memberState is what the leader knows about a member.
type memberState struct {
	Member
	seat      Seat
	peers     []Endpoint
	settled   bool
	lost      bool
	silent    time.Duration // for how long, before it counted as lost; 0 if that is not why
	lostAt    time.Time     // if its workers ran then; otherwise zero
	withdrawn bool          // it is lost because it has left the job
	ending    bool          // has received a signal that ends the attempt
	away      bool          // has not joined this attempt, but was a member of the one before
	replaces  string        // host of the lost agent whose seat it has taken over; "" if it is its own
	ready     bool          // has confirmed that it can start, or said why not
	ended     []Worker      // as far as published before it settled
	reached   *reached      // as far as published
	connects  *connecting   // as far as published
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
	l, err := resume(ctx, client, jobKeysOf(DefaultPrefix, c.Job).only(), c, term{}, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot lead job %q: %w", c.Job, err)
	}
	if l == nil {
		return nil, fmt.Errorf("cannot lead job %q: %w", c.Job, ErrClosed)
	}
	return l, nil
}

// valid tells whether the numbers of agents, and the grace, are possible.
func (c *LeaderConfig) valid() bool {
	return c.LostGrace >= 0 && c.LostGrace <= MaxLostGrace && c.Agents >= 1 &&
		c.Spares >= 0 && c.Spares < c.Agents && c.MinAgents >= 0 &&
		c.MinAgents <= c.Agents && (c.MinAgents == 0 || c.Spares == 0)
}

func newLeader(client *clientv3.Client, k keys, c LeaderConfig) *Leader {
	c.SettleTimeout = cmp.Or(c.SettleTimeout, defaultSettleTimeout)
	c.stragglingAfter = cmp.Or(c.stragglingAfter, defaultStragglingAfter)
	if c.initTimes.ask == 0 {
		c.initTimes = defaultInitTimes
	}
	return &Leader{
		config: c, client: client, keys: k,
		members: map[string]*memberState{}, gone: map[string]bool{},
		preparing: map[string]preparing{}, cancel: func() {},
	}
}

// Run leads the job, one attempt after another, until all agents have settled and form no other
// attempt; then it returns nil. If the store ends the watch it begins again with what is in the
// store. When ctx ends it returns ctx's cause. After another error the job has no leader, and the
// host of the store should close that, so that all agents learn of it.
func (l *Leader) Run(ctx context.Context) error {
	for l != nil {
		next, err := l.runAttempt(ctx)
		if _, interrupted := errors.AsType[watchError](err); interrupted {
			for _, m := range l.joined {
				l.term.known = append(l.term.known, m.Member)
			}
			if err = awaitReturn(ctx, &l.config); err == nil {
				next, err = resume(ctx, l.client, l.keys.run, l.config, l.term, l)
			}
		}
		if err != nil {
			return err
		}
		l = next
	}
	return nil
}

// runAttempt leads one attempt, and returns the leader of the next one, nil if there is none.
func (l *Leader) runAttempt(ctx context.Context) (next *Leader, err error) {
	defer func() {
		if next == nil {
			l.cancel()
		}
	}()
	l.begin = time.Now()
	l.scheduleWaiting()
	for l.verdict == nil || l.pending > 0 {
		if err := l.step(ctx); err != nil {
			return nil, err
		}
	}
	l.findCause()
	next, decision := l.afterwards()
	if err := l.writeSettled(ctx, next, decision); err != nil {
		return nil, err
	}
	return next, nil
}

func (l *Leader) step(ctx context.Context) error {
	select {
	case response, open := <-l.events:
		if !open {
			return ErrStoreLost
		}
		return l.apply(ctx, response)
	case <-l.returned:
		return l.loseMissing(ctx)
	case <-l.joinTimeout:
		return l.joinTimedOut(ctx)
	case <-l.lastCall:
		return l.endLastCall(ctx)
	case <-l.startTime:
		return l.start(ctx)
	case <-l.waiting:
		l.reportWaiting()
	case <-l.reportTime:
		l.reportStragglers()
	case <-l.init.ask:
		return l.askForInit(ctx)
	case <-l.init.report:
		return l.reportInit(ctx)
	case <-l.exitTimeout:
		return l.stopStragglers(ctx)
	case <-l.settleTimeout:
		l.pending = 0
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// apply handles what was written to the store.
func (l *Leader) apply(ctx context.Context, response clientv3.WatchResponse) error {
	if err := response.Err(); err != nil {
		return fmt.Errorf("cannot watch job %q: %w", l.config.Job, watchError{err})
	}
	for _, e := range response.Events {
		apply := l.applyEvent
		if e.Type != clientv3.EventTypePut {
			apply = l.applyDeletion
		}
		if err := apply(ctx, string(e.Kv.Key), e.Kv.Value); err != nil {
			return err
		}
	}
	return nil
}

// applyDeletion handles that a key of an agent was deleted, which leaves only when the leader has
// written that all have settled. In a store that no agent hosts that may be the end of its lease.
func (l *Leader) applyDeletion(ctx context.Context, key string, _ []byte) error {
	if id, ok := strings.CutPrefix(key, l.keys.members()); ok {
		return l.memberDeleted(ctx, id)
	}
	if id, ok := strings.CutPrefix(key, l.keys.run.agents()); ok {
		l.miss(id)
	}
	if id, ok := strings.CutPrefix(key, l.keys.preparing()); ok {
		delete(l.preparing, id)
	}
	return nil
}

func (l *Leader) applyEvent(ctx context.Context, key string, value []byte) error {
	if id, ok := strings.CutPrefix(key, l.keys.run.losses()); ok {
		why, err := decode[loss](value)
		if err != nil {
			why = loss{Silent: true} // its workers may run
		}
		return l.lose(ctx, id, why)
	}
	if id, ok := strings.CutPrefix(key, l.keys.members()); ok {
		return l.admit(ctx, id, value)
	}
	if strings.HasPrefix(key, l.keys.run.strangers()) {
		l.readStranger(value)
		return nil
	}
	if id, ok := strings.CutPrefix(key, l.keys.preparing()); ok {
		if p, err := decode[preparing](value); err == nil && l.members[id] == nil {
			l.preparing[id] = p
		}
		return nil
	}
	if id, ok := strings.CutPrefix(key, l.keys.readies()); ok {
		return l.readReady(ctx, id, value)
	}
	if id, ok := strings.CutPrefix(key, l.keys.outcomes()); ok {
		return l.readOutcome(ctx, id, value)
	}
	if id, ok := strings.CutPrefix(key, l.keys.progresses()); ok {
		return l.readProgress(ctx, id, value)
	}
	if id, ok := strings.CutPrefix(key, l.keys.reaches()); ok {
		return l.readReached(ctx, id, value)
	}
	if id, ok := strings.CutPrefix(key, l.keys.connects()); ok {
		l.readConnecting(id, value)
	}
	if key == l.keys.absent() {
		l.readAbsent(value)
	}
	if key == l.keys.verdict() && l.verdict == nil {
		v, err := decode[Verdict](value)
		if err != nil { // also ends the job, because no agent can decode it
			v = unready(fmt.Sprintf("cannot read the verdict: %v", err))
		}
		l.takeVerdict(v)
	}
	return nil
}

// takeVerdict handles that this is the attempt's verdict.
func (l *Leader) takeVerdict(v Verdict) {
	l.verdict, l.verdictAt = &v, time.Now()
	l.settleTimeout = time.After(l.config.SettleTimeout)
}
