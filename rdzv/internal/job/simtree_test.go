package job

import (
	"cmp"
	"time"

	"rdzv/rdzv/internal/record"
)

// tree is the model of the processes of one task of an agent: its workers, and what these have
// started and left, such as the python of a shell script that SIGTERM has ended.
type tree struct {
	attempt     int
	workers     bool // some of them run
	descendants bool // processes run that outlive the workers, until somebody ends them
}

func (t *tree) runs() bool { return t.workers || t.descendants }

// working tells whether workers of the agent run.
func (a *agent) working() bool {
	for i := range a.trees {
		if a.trees[i].workers {
			return true
		}
	}
	return false
}

// busy tells whether processes of the agent run.
func (a *agent) busy() bool {
	for i := range a.trees {
		if a.trees[i].runs() {
			return true
		}
	}
	return false
}

// checkAlone checks that no process of an older attempt runs when a worker of the agent starts. The
// processes of a frozen node do not run; when it continues they are stopped until its agent has
// asked the store.
func (a *agent) checkAlone() {
	for _, other := range a.agents {
		if other.frozen && !other.alone || a.now <= other.excused {
			continue
		}
		for i, t := range other.trees {
			if t.runs() && t.attempt < a.attempt {
				a.fail("a process of attempt %d of task %d on %s still runs when a worker of attempt %d starts on %s",
					t.attempt, i, other.id, a.attempt, a.id)
			}
		}
	}
}

// launch starts the workers of all tasks, which end at different times. Some leave processes.
func (a *agent) launch() {
	a.checkAlone()
	a.runs, a.codes, a.stopping = a.attempt, 0, false
	a.leased = a.attempt < a.config.Restarts.Max
	a.trees = make([]tree, len(a.self.Tasks))
	n := a.attempt
	for i := range a.trees {
		a.trees[i] = tree{attempt: n, workers: true, descendants: a.rng.IntN(3) == 0}
		a.inTree(a.between(5*time.Second, 40*time.Second), func() {
			t := &a.trees[i]
			if a.runs != n || !t.workers || a.stopping {
				return
			}
			if a.rng.IntN(20) == 0 {
				a.now2(func() { a.failWorker(n) }) // it happens, too
				return
			}
			if t.workers = false; t.descendants {
				a.kinds[leftovers] = true
				t.descendants = a.rng.IntN(3) > 0
			}
			a.workersEnded(n)
		})
	}
}

// inTree runs something after some time in the processes of a tree: not while the node is frozen.
func (a *agent) inTree(d time.Duration, do func()) {
	a.after(d, func() {
		if a.frozen && !a.alone {
			a.deferred = append(a.deferred, do)
			return
		}
		do()
	})
}

// workersEnded lets the agent settle if no worker runs, and follow what it has waited for if its
// trees are empty.
func (a *agent) workersEnded(n int) {
	a.now2(func() {
		if a.runs != n || a.working() {
			return
		}
		a.settle()
		if a.settled != nil {
			a.afterwards()
		}
	})
}

// endTrees lets all processes end: of each task the workers first, and then, within grace, what they
// have left. then is called when nothing is left.
func (a *agent) endTrees(grace time.Duration, then func()) {
	n := a.runs
	for i := range a.trees {
		workers := min(grace, a.between(time.Millisecond, 2*time.Second))
		left := workers
		if a.trees[i].descendants {
			left = max(workers, a.between(0, grace))
		}
		a.inTree(workers, func() {
			if a.runs == n {
				a.trees[i].workers = false
				a.workersEnded(n)
			}
		})
		a.inTree(left, func() {
			if a.runs == n {
				a.trees[i] = tree{attempt: n}
				if !a.busy() {
					then()
				}
			}
		})
	}
	if len(a.trees) == 0 {
		then()
	}
}

// kill ends all processes at once.
func (a *agent) kill() {
	for i := range a.trees {
		a.trees[i].workers, a.trees[i].descendants = false, false
	}
}

// killTrees is what the holders of the tasks do when their agent has died.
func (a *agent) killTrees(then func()) {
	a.endTrees(900*time.Millisecond, then)
}

// freezeAlone stops an agent, but not its workers: SIGSTOP to one process.
func (a *agent) freezeAlone(d time.Duration) {
	if !a.alive || a.over || a.cut || a.frozen || a.host {
		return
	}
	a.frozen, a.alone, a.disturbed = true, true, true
	a.kinds[alone] = true
	a.epoch++
	epoch, ends := a.epoch, a.leaseEnds()
	a.say("%s is frozen for %v, and its workers run", a.id, d)
	if a.member {
		a.after(ends, func() { a.loseSilent(epoch) })
	}
	if a.leased {
		a.after(a.answered+a.config.LeaseTTL-a.now+a.between(0, time.Second), func() { a.leaseOver2(epoch) })
	}
	limit := a.config.LeaseTTL
	a.after(a.between(limit, limit+limit/4), func() {
		if a.epoch == epoch && a.holderLooks() {
			a.say("the holder of %s kills it", a.id)
			a.frozen, a.alone, a.deferred = false, false, nil
			a.die()
		}
	})
	a.after(d, func() {
		if a.epoch == epoch {
			a.alone = false
			a.proceed()
		}
	})
}

// holderLooks tells whether the holder looks at the lease and the agent.
func (a *agent) holderLooks() bool { return a.busy() }

// leaseOver2 is that the lease is over, while the agent cannot do anything. Its holders end the
// workers, and after the grace everything.
func (a *agent) leaseOver2(epoch int) {
	if a.epoch != epoch || !a.holderLooks() {
		return
	}
	n := a.runs
	for i := range a.trees {
		a.trees[i].workers = false // such as a shell, which ends at once
	}
	a.codes = cmp.Or(a.codes, -15)
	a.workersEnded(n)
	a.after(a.config.LostGrace, func() {
		if a.epoch == epoch && a.runs == n && a.holderLooks() {
			a.kill()
		}
	})
}

// end is the end of the process of an agent, whose connection its holders have too: the store reads
// its end when nothing is left of the trees. Sometimes they do not have it.
func (a *agent) end() {
	ends := func(l record.Loss) { a.after(50*time.Millisecond, func() { a.lostInStore(l) }) }
	if a.rng.IntN(4) == 0 {
		a.killTrees(func() {})
		ends(record.Loss{})
		return
	}
	a.killTrees(func() { ends(record.Loss{Ended: true}) })
}

// breakConnection ends the connection of an agent as the store sees it, such as by a reset. The agent may be cut off, or connects again.
func (a *agent) breakConnection() {
	if !a.alive || a.over || a.cut || a.frozen || a.host || !a.hosted || !a.member {
		return
	}
	a.kinds[resets] = true
	if a.rng.IntN(2) == 0 {
		a.silence(a.between(2*time.Second, 40*time.Second))
		a.after(a.between(50*time.Millisecond, 3*time.Second), func() { a.lostInStore(record.Loss{}) })
		return
	}
	a.disturbed = true
	again := a.latency() + a.latency()
	if again <= 50*time.Millisecond {
		return
	}
	a.after(50*time.Millisecond, func() { a.lostInStore(record.Loss{}) })
	a.later(again, a.refused)
}

// refused is that the store says that it has lost the agent.
func (a *agent) refused() {
	if _, lost := a.keys[run.Lost().Of(a.id)]; !lost || a.over {
		return
	}
	a.say("%s learns that it is lost", a.id)
	a.over, a.lost, a.lead = true, true, nil
	a.kill()
}

// revokeOne ends the lease of one agent early, as a leader of an etcd cluster may that was frozen.
// Sometimes the agent is cut off at that moment.
func (a *agent) revokeOne() {
	if a.hosted || a.removed || !a.member || a.over || a.gone || a.cut {
		return
	}
	if _, there := a.keys[run.Agents().Of(a.id)]; !there {
		return
	}
	a.say("the lease of %s is revoked", a.id)
	a.kinds[oneLease] = true
	if a.rng.IntN(2) == 0 {
		a.silence(a.between(2*time.Second, 40*time.Second))
	}
	a.revokedAt = a.now
	a.revoke(a.id)
	a.later(a.between(time.Millisecond, 300*time.Millisecond), a.register)
}

// cutAll cuts off all agents, and starts the same command again on another node.
func (s *simulation) cutAll(again func()) {
	if s.hosted {
		return
	}
	s.say("all agents are cut off")
	for _, a := range s.agents {
		a.silence(s.between(30*time.Second, 90*time.Second))
	}
	s.after(s.between(s.config.LeaseTTL, 3*s.config.LeaseTTL), again)
}

// nextRun is that an agent finds no agent of this run, although that is not over, and begins
// another one, unless some return.
func (a *agent) nextRun(until time.Duration) {
	a.later(a.outlives()+a.between(0, 6*time.Second), func() {
		a.request(func() bool {
			if a.removed || !a.lastAgentLeft() {
				return false
			}
			a.say("%s begins another run", a.id)
			a.begins()
			return true
		}, func(bool) {
			if a.removed {
				a.leave()
				return
			}
			a.join(until)
		})
	})
}

// outlives is how long processes of a run may run after its last agent is gone.
func (s *simulation) outlives() time.Duration {
	if s.config.Restarts.Max > 0 {
		return s.config.LeaseTTL + s.grace + lostMargin // the last attempt has no lease
	}
	return time.Minute + s.grace + lostMargin
}

// begins checks that no process of this run runs when the next one begins.
func (s *simulation) begins() {
	s.kinds[secondRun] = true
	for _, other := range s.agents {
		if other.busy() && (!other.frozen || other.alone) && s.now > other.excused {
			s.fail("processes of %s run when another run begins", other.id)
		}
	}
	s.removed, s.revived = true, true
	clear(s.keys)
}
