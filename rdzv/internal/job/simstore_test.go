package job

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"rdzv/rdzv/internal/record"
)

// simulation is one schedule: agents, a store and a clock that are models.
type simulation struct {
	seed   uint64
	rng    *rand.Rand
	config settings
	hosted bool // agent 0 hosts the store

	now   time.Duration
	queue queue
	seq   int
	done  int // number of events

	keys      map[string]entry
	rev       int64
	log       []revision
	watchers  []*watcher
	verdicts  map[string]any  // by key, also if it was removed
	removed   bool            // the run
	forgotten map[string]bool // attempts that were removed

	agents    []*agent
	led       bool                     // an agent has led
	goneAt    map[string]time.Duration // when agent/ID was deleted, by ID, if it is not there again
	joinedAt  time.Duration            // when the last of them was put
	launched  bool
	expired   bool // the lease of the job has
	revived   bool
	grace     time.Duration  // of workers that are stopped
	opsPerTxn int            // of a leader
	kinds     [numKinds]bool // what has happened
	ends      map[record.Kind]bool
	problem   string
	trace     []string
	verbose   bool
}

// base is the time at which each schedule begins.
var base = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *simulation) time() time.Time { return base.Add(s.now) }

// fail notes that an invariant does not hold.
func (s *simulation) fail(format string, args ...any) {
	if s.problem == "" {
		s.problem = fmt.Sprintf(format, args...)
		s.say("PROBLEM %s", s.problem)
	}
}

func (s *simulation) say(format string, args ...any) {
	if s.verbose {
		s.trace = append(s.trace, fmt.Sprintf("%9.3f ", s.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

// between is a random time.
func (s *simulation) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.rng.Int64N(int64(most-least)+1))
}

// latency is that of one direction of a connection: short, and sometimes long.
func (s *simulation) latency() time.Duration {
	switch s.rng.IntN(50) {
	case 0:
		s.kinds[slow] = true
		return s.between(100*time.Millisecond, 2*time.Second)
	case 1, 2:
		return s.between(5*time.Millisecond, 50*time.Millisecond)
	}
	return s.between(100*time.Microsecond, 2*time.Millisecond)
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)   { *q = append(*q, e.(event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (s *simulation) after(d time.Duration, do func()) {
	s.seq++
	heap.Push(&s.queue, event{s.now + d, s.seq, do})
}

// run handles all events, up to a time after which nothing can happen any more.
func (s *simulation) run() {
	for s.queue.Len() > 0 && s.problem == "" && s.now < time.Hour {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		s.done++
		e.do()
	}
}

// entry is a key of the store.
type entry struct {
	value       any
	create, mod int64
	lease       string // ID of the agent with whose lease it ends; "" is the job's
}

type revision struct {
	rev     int64
	changes []Change
}

// watcher reads the changes of the store in order.
type watcher struct {
	cursor  int
	pending bool
	wake    func()
}

// holds tells whether the conditions of a transaction are true.
func (s *simulation) holds(conds []Cond) bool {
	for _, c := range conds {
		if e, exists := s.keys[c.Key]; exists != c.Exists || c.Rev > 0 && e.mod != c.Rev {
			return false
		}
	}
	return true
}

// commit executes a transaction.
func (s *simulation) commit(lease string, conds []Cond, ops ...Op) bool {
	if s.removed || !s.holds(conds) {
		return false
	}
	r := revision{rev: s.rev + 1}
	for _, op := range ops {
		switch {
		case op.Value != nil:
			old, exists := s.keys[op.Key]
			e := entry{op.Value, r.rev, r.rev, lease}
			if strings.Contains(op.Key, "/member/") {
				e.lease = ""
			}
			if exists {
				e.create = old.create
			}
			s.checkPut(op.Key, op.Value, exists)
			s.keys[op.Key] = e
			r.changes = append(r.changes, Change{op.Key, op.Value, r.rev})
		case op.End != "":
			s.checkRange(op)
			for _, key := range slices.Sorted(maps.Keys(s.keys)) {
				if key >= op.Key && key < op.End {
					delete(s.keys, key)
					r.changes = append(r.changes, Change{Key: key, Rev: r.rev})
				}
			}
		default:
			if _, exists := s.keys[op.Key]; exists {
				delete(s.keys, op.Key)
				r.changes = append(r.changes, Change{Key: op.Key, Rev: r.rev})
			}
		}
	}
	s.publish(r)
	return true
}

func (s *simulation) publish(r revision) {
	if len(r.changes) == 0 {
		return
	}
	s.rev = r.rev
	s.log = append(s.log, r)
	if s.verbose {
		for _, c := range r.changes {
			s.say("store %d: %s = %s", r.rev, c.Key, short(c.Value))
		}
	}
	for _, c := range r.changes {
		if id, ok := strings.CutPrefix(c.Key, "agent/"); ok {
			s.noteReturn(id, c.Value != nil)
		}
	}
	for _, w := range s.watchers {
		if !w.pending {
			w.pending = true
			s.after(s.latency(), w.wake)
		}
	}
}

func short(v any) string {
	if v == nil {
		return "(deleted)"
	}
	if m, ok := v.(record.Member); ok {
		return fmt.Sprintf("member on %s with ranks %q", m.Host, m.TaskRanks())
	}
	text := fmt.Sprintf("%+v", v)
	return text[:min(len(text), 200)]
}

// revoke ends the lease of an agent.
func (s *simulation) revoke(id string) {
	r := revision{rev: s.rev + 1}
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if s.keys[key].lease == id {
			delete(s.keys, key)
			r.changes = append(r.changes, Change{Key: key, Rev: r.rev})
		}
	}
	s.publish(r)
}

// snapshot is what is in the store.
func (s *simulation) snapshot() (all []Change) {
	for key, e := range s.keys {
		all = append(all, Change{key, e.value, e.mod})
	}
	return all
}

// checkPut checks the invariants about what is written.
func (s *simulation) checkPut(key string, value any, exists bool) {
	attempt, _, _ := strings.Cut(key, "/")
	_, ended := s.keys[attempt+"/signal/verdict"]
	switch v := value.(type) {
	case record.Verdict:
		if s.forgotten[attempt] {
			return // by an agent that continues, and has yet to find that it is lost: nobody reads it
		}
		if first, known := s.verdicts[key]; known && first != any(v.Error()) {
			s.fail("%s: %q after %q", key, v.Error(), first)
		} else if exists {
			s.fail("%s is written again", key)
		}
		s.verdicts[key] = v.Error()
		s.ends[v.Kind] = true
		if v.Kind == record.Incomplete && attempt == "0" {
			s.checkIncomplete()
		}
		if _, lost := s.keys[run.Lost().Of(v.By)]; v.LostAgent() && !lost && v.By != "" {
			s.fail("%s says that %s is lost, which lives", key, v.By)
		}
	case record.World:
		if s.forgotten[attempt] {
			return // a late request: nobody reads it
		}
		if exists {
			s.fail("%s is written again", key)
		}
		if ended {
			s.fail("%s is written after the verdict", key)
		}
		s.checkWorld(attempt, v)
	case record.Settled:
		if exists {
			s.fail("%s is written again", key)
		}
		if !ended {
			s.fail("%s is written before the verdict", key)
		}
	case record.SeatValue:
		if exists && !reflect.DeepEqual(s.keys[key].value, value) {
			s.fail("%s is written again", key)
		}
	case record.Loss:
		s.checkLoss(strings.TrimPrefix(key, "lost/"), v)
	}
}

// checkLoss checks that a lost agent is gone, and was not connected all the time, except for the
// revocation of its lease a short time ago.
func (s *simulation) checkLoss(id string, loss record.Loss) {
	if s.hosted {
		return
	}
	if _, lives := s.keys[run.Agents().Of(id)]; lives && !loss.Left {
		s.fail("%s is lost, which lives", id)
	}
	for _, a := range s.agents {
		if a.id == id && !a.disturbed && !a.over && s.now < s.goneAt[id]+s.config.ReturnTime {
			s.fail("%s is lost %v after its lease was revoked", id, s.now-s.goneAt[id])
		}
	}
}

// checkWorld checks that no seat is taken twice, and by no agent that the leader has declared lost,
// and that the ranks are 0 to n-1.
func (s *simulation) checkWorld(attempt string, w record.World) {
	taken := make([]bool, w.Size)
	n, tasks := 0, 0
	for key, e := range s.keys {
		if !strings.HasPrefix(key, attempt+"/seat/") {
			continue
		}
		seat := e.value.(record.SeatValue)
		id := strings.TrimPrefix(key, attempt+"/seat/")
		if _, lost := s.keys[run.Lost().Of(id)]; lost && !s.hosted && !seat.Full {
			s.fail("attempt %s: the world has %s, which is lost", attempt, id)
		}
		if m, ok := s.keys[attempt+"/member/"+id].value.(record.Member); ok && !seat.Full {
			tasks += len(m.Tasks)
			s.checkSeat(attempt, seat.Seat, m)
		}
		for _, rank := range seat.AllRanks() {
			if rank < 0 || rank >= w.Size || taken[rank] {
				s.fail("attempt %s: rank %d of %d is taken twice or impossible", attempt, rank, w.Size)
				return
			}
			taken[rank] = true
			n++
		}
	}
	if n != w.Size {
		s.fail("attempt %s: %d of %d ranks", attempt, n, w.Size)
	}
	c := &s.config
	if !c.elastic() && attempt == "0" && tasks != c.Tasks || c.elastic() && (tasks < c.MinTasks || tasks > c.Tasks) {
		s.fail("attempt %s: the world has %d tasks of %d, at least %d", attempt, tasks, c.Tasks, c.MinTasks)
	}
}

// checkSeat checks that a seat has as many workers as its agent, and that these have the launcher's
// ranks if they can.
func (s *simulation) checkSeat(attempt string, seat record.Seat, m record.Member) {
	if seat.Spare || seat.Workers() == 0 {
		return
	}
	if seat.Workers() != m.Workers() || seat.Workers() > seat.LocalSize {
		s.fail("attempt %s: %s has %d workers and the seat %+v", attempt, m.ID, m.Workers(), seat)
		return
	}
	keeps := s.launched && !s.config.elastic() && s.config.Spares == 0 && m.Tasks[0].Slots == 1
	for i, t := range m.Tasks {
		if keeps && (seat.RankOf(i) != t.Rank || seat.LocalRankOf(i) != t.LocalRank) {
			s.fail("attempt %s: task %d of %s has rank %d", attempt, t.Rank, m.ID, seat.RankOf(i))
		}
	}
}

func (s *simulation) noteReturn(id string, there bool) {
	if there {
		s.joinedAt = s.now
		delete(s.goneAt, id)
		return
	}
	s.goneAt[id] = s.now
}

// checkIncomplete checks that the first attempt has not waited in vain for agents of which it could
// be known that they are lost.
func (s *simulation) checkIncomplete() {
	lost, here := 0, 0
	for _, a := range s.agents {
		at, gone := s.goneAt[a.id]
		if _, there := s.keys[run.Agents().Of(a.id)]; there {
			here += len(a.self.Tasks)
		} else if gone && !a.gone && s.now > at+30*time.Second {
			lost += len(a.self.Tasks)
		}
	}
	c := &s.config
	if c.MinTasks == 0 && lost == 0 && here == c.Tasks && s.now > s.joinedAt+time.Second {
		s.fail("attempt 0 has waited although all %d tasks are there", c.Tasks)
	}
	switch enough := here >= c.MinTasks || c.Tasks-lost >= c.MinTasks; {
	case c.MinTasks == 0 && lost > 0:
		s.fail("attempt 0 has waited for other agents although %d are lost", lost)
	case c.MinTasks > 0 && s.launched && !c.Replaceable && !enough:
		s.fail("attempt 0 has waited for other agents although %d of %d are lost", lost, c.Tasks)
	}
}

// checkRange checks that an attempt is removed only when the next one has a world.
func (s *simulation) checkRange(op Op) {
	var n int
	if _, err := fmt.Sscanf(op.Key, "%d/", &n); err != nil || strings.Contains(op.Key, "/seat/") {
		return
	}
	if _, agreed := s.keys[run.Attempt(n+1).World()]; !agreed && !s.forgotten[fmt.Sprint(n)] {
		s.fail("attempt %d is removed although there is no world of the next one", n)
	}
	s.forgotten[fmt.Sprint(n)] = true
}
