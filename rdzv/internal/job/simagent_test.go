package job

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// agent is the model of an agent and of its workers.
type agent struct {
	*simulation
	id        string
	self      record.Member
	host      bool // the store is in its process
	alive     bool // its process exists
	over      bool // it has left, or given up
	lost      bool // it has found that it is lost
	frozen    bool // with its workers, unless alone
	alone     bool // its workers run although it is frozen
	disturbed bool // it was not connected all the time
	cut       bool // no message arrives, in either direction
	deferred  []func()
	answered  time.Duration // when it sent the last message that was answered
	epoch     int           // of what lasts: cuts, freezes
	watch     watcher

	began     bool // it has opened its connection
	leaseOver bool // the store has revoked its lease, or has written that it is lost
	gone      bool // it has deregistered

	member  bool // has registered
	attempt int
	late    bool // it joins an attempt that runs
	seat    *record.Seat
	world   *record.World
	verdict *record.Verdict
	settled *record.Settled
	put     bool // its outcome of this attempt
	leaving bool // it has asked to leave, and has no workers
	term    bool // it has received SIGTERM that it has yet to handle
	ending  bool // it has received a signal that ends the attempt
	another time.Duration

	trees     []tree        // of its tasks
	runs      int           // the attempt of its workers
	leased    bool          // they have a lease
	excused   time.Duration // until then they may run although the agent is lost
	stopping  bool
	codes     int           // exit code of its workers
	revokedAt time.Duration // when its lease was revoked early

	lead *leader
}

// later runs something of this agent's after some time, when it is not frozen.
func (a *agent) later(d time.Duration, do func()) {
	a.after(d, func() { a.now2(do) })
}

func (a *agent) now2(do func()) {
	switch {
	case !a.alive:
	case a.frozen:
		a.deferred = append(a.deferred, do)
	default:
		do()
	}
}

// request executes something in the store, and then has the answer. It is repeated until there is
// one.
func (a *agent) request(do func() bool, then func(ok bool)) { a.ask(do, then, false) }

// transact is request for a transaction: one that seemed to be lost may arrive after its repetition.
func (a *agent) transact(do func() bool, then func(ok bool)) { a.ask(do, then, true) }

func (a *agent) ask(do func() bool, then func(ok bool), mayBeLate bool) {
	retry := func() {
		a.later(a.between(20*time.Millisecond, 100*time.Millisecond), func() { a.ask(do, then, mayBeLate) })
	}
	a.after(a.latency(), func() {
		switch {
		case a.lost:
			return // its session has ended
		case a.storeLost():
			a.alive = false
			a.kill()
			return
		case a.cut:
			retry()
			return
		case a.rng.IntN(60) == 0: // it is lost
			a.kinds[lostRequest] = true
			if mayBeLate && a.rng.IntN(2) == 0 {
				a.kinds[lateRequest] = true
				a.after(a.between(100*time.Millisecond, 10*time.Second), func() {
					if !a.storeLost() && (a.member || !a.cut) { // the lease of one that is cut off ends
						do()
					}
				})
			}
			retry()
			return
		}
		ok := do()
		if a.rng.IntN(60) == 0 { // its answer is lost
			a.kinds[lostRequest] = true
			retry()
			return
		}
		a.later(a.latency(), func() {
			if a.cut {
				retry()
				return
			}
			then(ok)
		})
	})
}

// storeLost tells whether the agent that hosts the store is gone.
func (a *agent) storeLost() bool { return a.hosted && !a.agents[0].alive }

func (a *agent) txn(conds []Cond, ops []Op, then func(ok bool)) {
	lease := func(op Op) string { // what an agent puts with its own lease
		kind := op.Key
		if _, rest, ok := strings.Cut(op.Key, "/"); ok && !strings.HasPrefix(op.Key, "agent/") &&
			!strings.HasPrefix(op.Key, "host/") {
			kind = rest
		}
		for _, own := range []string{"agent/", "host/", "progress/"} {
			if strings.HasPrefix(kind, own) {
				return a.id
			}
		}
		return ""
	}
	a.transact(func() bool { return a.commit(lease(ops[0]), conds, ops...) }, then)
}

func (a *agent) k() keys.Attempt { return run.Attempt(a.attempt) }

// enter makes the agent a member of an attempt.
func (a *agent) enter(then func(ok bool)) {
	a.began = true
	k := a.k()
	conds := []Cond{absent(k.Verdict()), absent(run.Lost().Of(a.id))}
	if a.late {
		conds = append(conds, present(k.World()))
		if a.attempt == 0 {
			conds = append(conds, absent(run.Latest()))
		}
	} else {
		conds = append(conds, absent(k.World()))
	}
	var ops []Op
	first := !a.member
	if first {
		ops = append(ops, Op{Key: run.Agents().Of(a.id), Value: a.self.Identity()})
		if a.self.OccupiesHost() {
			key := "host/" + a.self.Node
			conds, ops = append(conds, absent(key)), append(ops, Op{Key: key, Value: a.self.ID})
		}
	}
	ops = append(ops, Op{Key: k.Members().Of(a.id), Value: a.self})
	a.transact(func() bool {
		_, lives := a.keys[run.Agents().Of(a.id)]
		if _, exists := a.keys[k.Members().Of(a.id)]; exists && lives {
			return true // an answer was lost
		}
		if a.leaseOver && first || !a.commit(a.id, conds, ops...) { // a member is not on its lease
			return false
		}
		a.loseAtJoin(a)
		return true
	}, func(ok bool) {
		if ok {
			a.member = true
			a.say("%s joins attempt %d", a.id, a.attempt)
			if !a.hosted {
				a.elect()
			}
		}
		then(ok)
	})
}

// join makes a new agent a member of the first attempt, or of a later one in the place of a lost
// agent.
func (a *agent) join(until time.Duration) {
	a.enter(func(ok bool) {
		switch {
		case ok:
			a.joined()
		case a.now > until:
			a.leave()
		default:
			a.later(a.between(200*time.Millisecond, time.Second), func() { a.lookForPlace(until) })
		}
	})
}

// lookForPlace finds the attempt that an agent may join for which the first one has no place.
func (a *agent) lookForPlace(until time.Duration) {
	over, runs, nobody := false, false, false
	a.request(func() bool {
		nobody = !a.hosted && a.lastAgentLeft()
		n := 0
		if e, ok := a.keys[run.Latest()]; ok {
			n = e.value.(record.Latest).Attempt
		}
		k := run.Attempt(n)
		e, decided := a.keys[k.Settled()]
		over = a.removed || decided && e.value.(record.Settled).Restart == nil
		w, agreed := a.keys[k.World()]
		_, ended := a.keys[k.Verdict()]
		runs = agreed && !ended && w.value.(record.World).MaxTasks > 0 && new(w.value.(record.World)).MayRestart()
		a.attempt = n
		return true
	}, func(bool) {
		switch {
		case over && a.expired && !a.revived: // the store does not know the run any more
			a.begins()
			a.leave()
			return
		case over:
			a.leave()
			return
		case nobody:
			a.nextRun(until)
			return
		}
		a.late = runs
		a.join(until)
	})
}

// joined follows the signals of an attempt.
func (a *agent) joined() {
	if a.watch.wake == nil {
		a.watch.wake = func() { a.watch.pending = false; a.now2(a.follow) }
		a.watchers = append(a.watchers, &a.watch)
	}
	a.watch.cursor = 0
	if a.term && a.verdict == nil { // between two attempts
		a.term = false
		a.withdraw()
	}
	a.follow()
}

// follow reads what was written.
func (a *agent) follow() {
	if a.cut || a.over || a.storeLost() {
		return
	}
	signals := a.k().Prefix + "signal/"
	for a.watch.cursor < len(a.log) && !a.over {
		r := a.log[a.watch.cursor]
		a.watch.cursor++
		for _, c := range r.changes {
			if name, ok := strings.CutPrefix(c.Key, signals); ok && c.Value != nil {
				a.signal(name, c.Value)
				if a.k().Prefix+"signal/" != signals {
					return // it follows the next attempt from its beginning
				}
			}
		}
	}
}

func (a *agent) signal(name string, value any) {
	switch name {
	case "world":
		w := value.(record.World)
		a.world = &w
		a.readSeat()
	case "start":
		if a.world != nil && a.seat != nil && !a.seat.Spare {
			a.begin()
		}
	case "verdict":
		if a.verdict == nil {
			v := value.(record.Verdict)
			a.verdict = &v
			a.ended()
		}
	case "left/" + a.id:
		a.say("%s may leave", a.id)
		a.leave()
	case "settled":
		v := value.(record.Settled)
		a.settled = &v
		a.afterwards()
	}
}

// readSeat reads this agent's seat, which was written before the world.
func (a *agent) readSeat() {
	n, answers := a.attempt, a.world.MaxTasks > 0
	var seat *record.SeatValue
	forgotten := false
	a.request(func() bool {
		_, member := a.keys[run.Attempt(n).Members().Of(a.id)]
		forgotten = !member
		if e, ok := a.keys[run.Attempt(n).Seats().Of(a.id)]; ok {
			v := e.value.(record.SeatValue)
			seat = &v
		}
		return true
	}, func(bool) {
		switch {
		case n != a.attempt || a.over:
		case seat == nil && (!answers || forgotten) || seat != nil && seat.Full:
			a.leave() // the job has no place for it
		case seat == nil:
			a.later(50*time.Millisecond, func() {
				if n == a.attempt && !a.over {
					a.readSeat()
				}
			})
		default:
			a.seated(seat.Seat)
		}
	})
}

func (a *agent) seated(seat record.Seat) {
	if a.leaving {
		return // how is for the leader to decide
	}
	a.seat = &seat
	a.say("%s has seat %d of attempt %d", a.id, seat.First(), a.attempt)
	switch {
	case a.verdict != nil:
		a.ended()
	case seat.Spare:
		a.kinds[spares] = true
		if a.settled != nil {
			a.afterwards()
		}
	default:
		a.later(a.between(time.Millisecond, 20*time.Millisecond), a.begin)
	}
}

// begin starts the workers.
func (a *agent) begin() {
	if a.verdict != nil || a.over || a.busy() || a.seat == nil || a.runs == a.attempt {
		return
	}
	a.launch()
	n := a.attempt
	a.say("%s starts its workers of attempt %d", a.id, n)
}

// failWorker is that the workers of one task fail.
func (a *agent) failWorker(n int) {
	if !a.working() || a.runs != n || a.stopping {
		return
	}
	a.kinds[failures] = true
	for i := range a.trees {
		if a.trees[i].workers {
			a.trees[i].workers = false
			break
		}
	}
	a.codes = 1
	a.say("a worker of %s fails", a.id)
	text := "x" + strconv.Itoa(a.rng.IntN(3))
	v := record.FailedVerdict(a.id, a.self.Host, record.Worker{Rank: a.seat.First(), Code: 1, Text: text})
	if a.rng.IntN(3) == 0 {
		v.ReportDelay = record.Seconds(500 * time.Millisecond)
	}
	if a.rng.IntN(4) == 0 && !a.working() {
		a.settle() // the leader finds it in the outcome
		return
	}
	a.write(v)
}

func (a *agent) write(v record.Verdict) {
	k := a.k()
	a.txn([]Cond{absent(k.Verdict())}, []Op{{Key: k.Verdict(), Value: v}}, func(bool) {})
}

// ended stops the workers after the verdict.
func (a *agent) ended() {
	if v := a.verdict; v.Withdrawn && v.By != a.id {
		a.another = a.now
	}
	if a.leaving { // unless it is the reason it leaves the next attempt, if there is one
		a.leaving, a.term = false, a.verdict.By != a.id
		if a.world != nil && a.seat == nil {
			a.readSeat()
		}
	}
	if a.verdict.Kind == record.Moved {
		a.leave() // it would join again
		return
	}
	switch {
	case a.busy() && a.stopping:
	case a.busy():
		a.stopping, a.codes = true, cmp.Or(a.codes, -15)
		if !a.working() { // they have left processes
			a.settle()
		}
		a.endTrees(a.grace, func() {
			a.now2(func() {
				if a.settled != nil {
					a.afterwards()
				}
			})
		})
	case a.seat != nil && a.seat.Spare, a.late && a.seat == nil:
	default:
		a.settle()
	}
	if a.settled != nil {
		a.afterwards()
		return
	}
	a.awaitSettled()
}

// awaitSettled lets the agent leave without a goodbye if the others have not settled in time after
// all its processes have ended.
func (a *agent) awaitSettled() {
	n, limit := a.attempt, a.config.SettleTimeout+2*time.Second
	if !a.hosted {
		limit += a.config.LeaseTTL
	}
	a.later(limit, func() {
		switch {
		case a.over || a.host || n != a.attempt || a.settled != nil || a.verdict == nil:
		case a.busy():
			a.awaitSettled()
		default:
			a.say("%s has waited too long", a.id)
			a.kinds[tooLong] = true
			a.over, a.disturbed, a.lead = true, true, nil
			if a.hosted {
				a.after(a.latency(), func() { a.lostInStore(record.Loss{}) })
			} else {
				a.after(a.latency(), a.expire)
			}
		}
	})
}

// settle publishes how the workers have ended.
func (a *agent) settle() {
	if a.put || a.attempt < 0 {
		return
	}
	a.put = true
	o := record.Outcome{Host: a.self.Host, Ending: a.ending}
	if a.runs == a.attempt && a.seat != nil {
		for _, rank := range a.seat.AllRanks() {
			w := record.Worker{
				Rank: rank, Code: max(a.codes, 0), Signal: record.Signal(max(-a.codes, 0)),
				Stopped: a.codes < 0, RanFor: record.Seconds(a.now),
			}
			o.Workers = append(o.Workers, w)
		}
	}
	a.txn(nil, []Op{{Key: a.k().Outcomes().Of(a.id), Value: o}}, func(bool) {})
}

// afterwards leaves the job, or goes on to the next attempt.
func (a *agent) afterwards() {
	if a.over || a.busy() || a.verdict == nil {
		return
	}
	next := a.settled.Restart
	v := a.verdict
	if a.settled.Cause != nil {
		v = a.settled.Cause
	}
	if next == nil || v.Withdrawn && v.By == a.id {
		a.leave()
		return
	}
	if a.late && a.seat == nil {
		return // its seat says whether it is a member
	}
	a.kinds[restarts] = true
	a.attempt, a.late, a.seat, a.world, a.verdict, a.settled = next.Attempt, false, nil, nil, nil, nil
	a.put, a.leaving, a.ending, a.runs = false, false, false, -1
	n := a.attempt
	a.later(a.between(time.Millisecond, 3*time.Second), func() {
		if n != a.attempt || a.over {
			return
		}
		a.enter(func(bool) { a.joined() }) // or it reads the verdict
	})
	a.attempt = next.Attempt
}

// leave deregisters the agent. The last one removes the run.
func (a *agent) leave() {
	if a.over {
		return
	}
	a.over = true
	a.say("%s leaves", a.id)
	if a.host {
		a.alive = a.alive && len(a.agents) == 0 // the store waits for the others: not modelled
		a.alive = true
		return
	}
	if !a.member {
		return
	}
	done := false
	a.request(func() bool {
		if !done {
			done = true
			a.revokeOrdered()
		}
		return true
	}, func(bool) {})
}

// revokeOrdered deletes the agent's keys, and those of the run if it is the last one.
func (s *simulation) lastAgentLeft() bool {
	for key := range s.keys {
		if strings.HasPrefix(key, "agent/") {
			return false
		}
	}
	return true
}

func (a *agent) revokeOrdered() {
	a.gone = true
	ops := []Op{{Key: run.Agents().Of(a.id)}}
	if !a.hosted {
		ops = append(ops, Op{Key: run.Lost().Of(a.id), Value: record.Loss{Left: true}})
	}
	a.commit("", nil, ops...)
	a.revoke(a.id)
	if !a.hosted && a.lastAgentLeft() {
		a.removed = true
		clear(a.keys)
	}
}

// survivesLoss tells whether the job may go on without one of its agents, as far as this one knows.
func (a *agent) survivesLoss() bool {
	w := a.world
	if w == nil { // between two attempts
		return a.attempt > 0
	}
	return w.Attempt < w.MaxRestarts && (len(w.Spares) > 0 || w.MaxTasks > 0 || w.Replaceable)
}

// terminate is SIGTERM.
func (a *agent) terminate() {
	switch {
	case a.over || !a.member && a.attempt == 0:
	case a.settled != nil || a.verdict != nil:
		a.term = true
		a.ending = a.ending || a.now-a.another < time.Second
	case !a.member, a.runs == -1 && !a.memberHere():
		a.term = true
	default:
		a.withdraw()
	}
}

func (a *agent) memberHere() bool { _, ok := a.keys[a.k().Members().Of(a.id)]; return ok }

func (a *agent) withdraw() {
	a.say("%s has received SIGTERM", a.id)
	v := record.Verdict{Kind: record.Ended, By: a.id, Host: a.self.Host, PID: a.self.PID, Signal: 15}
	switch {
	case a.host:
	case a.seat != nil && a.seat.Spare, a.survivesLoss() && a.seat == nil:
		a.leaving = true
		a.kinds[idleTerm] = true
		o := record.Outcome{Host: a.self.Host, Withdrawn: true}
		a.txn([]Cond{absent(a.k().Verdict())}, []Op{{Key: a.k().Outcomes().Of(a.id), Value: o}}, func(bool) {})
		return
	default:
		v.Withdrawn = a.survivesLoss()
	}
	a.ending = true
	a.write(v)
}

// die is the end of its process and of its workers.
func (a *agent) die() {
	if !a.alive || a.over || a.host && a.now < 20*time.Second {
		return
	}
	a.say("%s dies", a.id)
	a.alive, a.lead, a.disturbed = false, nil, true
	a.epoch++
	if a.frozen { // its node, too
		a.frozen = false
		a.kill()
	}
	switch {
	case a.host:
		a.kill()
		for _, other := range a.agents {
			if other != a { // the store is lost
				other.after(other.between(time.Millisecond, time.Second), func() {
					other.alive = false
					other.kill()
				})
			}
		}
	case a.hosted:
		a.end()
	default:
		a.killTrees(func() {})
		a.after(a.leaseEnds(), func() { a.expire() })
	}
}

// loseAtJoin adds the loss of an agent at about the time at which the world is published, because
// this one has joined as the last one. It is for schedules in which an agent hosts the store.
func (s *simulation) loseAtJoin(last *agent) {
	joined := 0
	var other *agent
	for _, a := range s.agents {
		if _, there := s.keys[last.k().Members().Of(a.id)]; there {
			joined += len(a.self.Tasks)
			if a != last && !a.host && a.alive && !a.over {
				other = a
			}
		}
	}
	if !s.hosted || s.seed%8 != 7 || joined < s.config.Tasks || other == nil {
		return
	}
	s.say("%s dies while the world is published", other.id)
	other.alive, other.disturbed = false, true
	other.epoch++
	other.killTrees(func() {})
	other.after(s.between(0, 4*time.Millisecond), func() { other.lostInStore(record.Loss{}) })
}

// lostInStore is what the host of the store writes about an agent.
func (a *agent) lostInStore(l record.Loss) {
	_, known := a.keys[run.Lost().Of(a.id)]
	if a.leaseOver = true; a.began && !a.gone && !known && !a.storeLost() {
		a.kinds[agentLosses] = true
		a.checkLost()
		a.commit("", nil, Op{Key: run.Lost().Of(a.id), Value: l}, Op{Key: run.Agents().Of(a.id)})
		if a.self.OccupiesHost() {
			a.commit("", nil, Op{Key: "host/" + a.self.Node})
		}
	}
}

// expire is the end of its lease.
func (a *agent) expire() {
	a.leaseOver = true
	if _, there := a.keys[run.Agents().Of(a.id)]; there {
		a.kinds[agentLosses] = true
		a.revoke(a.id)
	}
	a.expireJob()
}

// expireJob is the end of the job's lease, if no agent keeps it alive.
func (s *simulation) expireJob() {
	if !s.lastAgentLeft() || s.removed {
		return
	}
	began := s.now
	s.after(max(2*s.config.LeaseTTL+30*time.Second, s.outlives()), func() {
		if s.lastAgentLeft() && s.joinedAt <= began {
			s.removed, s.expired = true, true
			clear(s.keys)
		}
	})
}

// checkLost checks that the agent is not declared lost that was connected all the time.
func (a *agent) checkLost() {
	if !a.disturbed {
		a.fail("%s is lost, which was connected all the time", a.id)
	}
}

// leaseEnds is in what time the lease of an agent ends that renews it no more. answered is when it
// sent the last renewal.
func (a *agent) leaseEnds() time.Duration {
	p := a.config.LeaseTTL
	a.answered = a.now - a.between(0, p/3)
	if a.hosted {
		a.answered = a.now - a.between(0, p/5)
	}
	return a.answered + p - a.now + a.between(time.Millisecond, time.Second)
}

// silence interrupts the connections of an agent for some time.
func (a *agent) silence(d time.Duration) {
	if !a.alive || a.over || a.cut || a.frozen || a.host {
		return
	}
	a.cut, a.disturbed = true, true
	a.epoch++
	epoch, ends := a.epoch, a.leaseEnds()
	a.say("%s is cut off for %v", a.id, d)
	if a.member {
		a.after(ends, func() { a.loseSilent(epoch) })
		a.later(a.answered+a.storeTimeout()-a.now, func() { a.loseStore(epoch) })
	}
	a.after(d, func() {
		if a.epoch == epoch && a.alive && !a.lost {
			a.say("%s is connected again", a.id)
			a.kinds[returns] = true
			a.cut = false
			a.epoch++
			a.now2(a.refused)
			if a.hosted || !a.member {
				a.now2(a.resume)
			} else {
				a.now2(a.register)
			}
		}
	})
}

// loseSilent is that the store has not heard the agent.
func (a *agent) loseSilent(epoch int) {
	switch {
	case a.epoch != epoch:
	case a.hosted:
		a.lostInStore(record.Loss{After: a.config.PeerTimeout})
	default:
		a.expire()
	}
}

// loseStore is that the agent has not heard the store: it stops its workers.
func (a *agent) loseStore(epoch int) {
	if a.epoch != epoch || a.over {
		return
	}
	a.say("%s takes itself for lost", a.id)
	a.over, a.lost, a.lead = true, true, nil
	grace := a.grace
	if a.leased {
		grace = a.config.LostGrace
	}
	a.endTrees(grace, func() {})
}

// storeTimeout is how long the store may not answer before the agent takes itself for lost. Without
// restarts its workers run for longer in a store that no agent hosts.
func (a *agent) storeTimeout() time.Duration {
	if a.hosted || a.config.Restarts.Max > 0 {
		return a.config.LeaseTTL
	}
	return time.Minute
}

// resume makes the agent read what it has missed.
func (a *agent) resume() {
	if a.member && !a.over {
		a.follow()
	}
	if a.lead != nil {
		a.lead.wake()
	} else if !a.hosted {
		a.elect()
	}
}

// freeze stops an agent and its workers for some time.
func (a *agent) freeze(d time.Duration) {
	if !a.alive || a.over || a.cut || a.frozen || a.host {
		return
	}
	a.frozen, a.disturbed = true, true
	a.epoch++
	epoch, ends := a.epoch, a.leaseEnds()
	a.say("%s is frozen for %v", a.id, d)
	if a.member {
		a.after(ends, func() { a.loseSilent(epoch) })
	}
	a.after(d, func() {
		if a.epoch == epoch {
			a.proceed()
		}
	})
}

// proceed continues a frozen agent. If that was longer than its lease its workers run until it
// stops them, and it asks the store whether it is a member.
func (a *agent) proceed() {
	if !a.alive {
		return
	}
	a.say("%s continues", a.id)
	a.kinds[proceeds] = true
	a.frozen = false
	a.epoch++
	deferred := a.deferred
	a.deferred = nil
	for _, do := range deferred {
		a.now2(do)
	}
	if !a.member || a.over {
		return
	}
	if a.now < a.answered+a.config.LeaseTTL {
		a.resume()
		return
	}
	if a.busy() {
		a.excused = a.now + time.Hour // its agent stops them within 50 ms, and asks the store
	}
	a.register()
}

// register puts the keys of an agent again whose lease has ended, unless it is lost.
func (a *agent) register() {
	there := false
	a.request(func() bool {
		if a.over {
			return false
		}
		if e, ok := a.keys[run.Agents().Of(a.id)]; ok {
			there = e.lease == a.id || a.hosted
		}
		if there || a.hosted {
			return there
		}
		ops := []Op{{Key: run.Agents().Of(a.id), Value: a.self.Identity()}}
		conds := []Cond{absent(run.Lost().Of(a.id))}
		if a.self.OccupiesHost() {
			key := "host/" + a.self.Node
			conds, ops = append(conds, absent(key)), append(ops, Op{Key: key, Value: a.self.ID})
		}
		a.leaseOver = false
		return a.commit(a.id, conds, ops...)
	}, func(ok bool) {
		a.excused = 0
		if a.over {
			return
		}
		if !ok {
			a.say("%s is lost, and knows it", a.id)
			a.over, a.lost, a.lead = true, true, nil
			a.kill()
			return
		}
		a.say("%s has registered again", a.id)
		a.kinds[registers] = true
		if !there && a.lead != nil {
			a.lead = nil // deposed
		}
		a.resume()
	})
}

// revoke ends the leases of all agents, as a leader of an etcd cluster does that was frozen. Those
// that live register again.
func (s *simulation) revokeAll() {
	if s.hosted || s.removed {
		return
	}
	s.say("all leases are revoked")
	for _, a := range s.agents {
		if _, there := s.keys[run.Agents().Of(a.id)]; there {
			s.revoke(a.id)
			a.revokedAt = s.now
			a.later(s.between(time.Millisecond, 300*time.Millisecond), a.register)
		}
	}
	s.expireJob()
}

func (a *agent) String() string {
	return fmt.Sprintf("%s: attempt %d, alive %t, over %t, frozen %t, cut %t, member %t, busy %t, "+
		"verdict %v, settled %v, seat %+v, leaving %t", a.id, a.attempt, a.alive, a.over, a.frozen, a.cut,
		a.member, a.busy(), a.verdict, a.settled != nil, a.seat, a.leaving)
}

func present(key string) Cond { return Cond{Key: key, Exists: true} }
