package job

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/restart"
)

// kind is a kind of event of a schedule.
type kind int

const (
	joins kind = iota
	lateStart
	leaves
	agentLosses
	silences
	returns
	freezes
	proceeds
	failures
	successes
	slow
	lostRequest
	lostLeader
	successors
	restarts
	spares
	elasticJob
	sigterm
	sigtermAll
	idleTerm
	newcomers
	registers
	hostedStore
	exports
	compared
	manyTasks
	interleaved
	lateTask
	leftovers
	alone
	resets
	oneLease
	interrupted
	secondRun
	lateRequest
	parts
	tooLong
	numKinds
)

var kindNames = [numKinds]string{"join", "late start", "leave", "loss", "silence", "return", "freeze", "continue",
	"failure", "success",
	"slow request", "lost request", "lost leader", "successor", "restart", "spare", "MIN:MAX", "SIGTERM", "SIGTERM to all",
	"SIGTERM without workers", "newcomer", "registers again", "store of an agent", "exports", "compared with Restore",
	"agents with many tasks", "interleaved ranks", "task with its own agent",
	"processes that workers have left", "frozen agent, workers run", "connection broken", "one lease revoked",
	"watch interrupted", "second run", "late request", "transaction in parts",
	"others settle too late"}

// rare are kinds that need not be in 5 % of the schedules: they follow from others.
var rare = []kind{idleTerm, registers, compared, tooLong}

// newSimulation makes the schedule of a seed.
func newSimulation(seed uint64, verbose bool) *simulation {
	s := &simulation{seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), keys: map[string]entry{},
		verdicts: map[string]any{}, forgotten: map[string]bool{}, ends: map[record.Kind]bool{},
		goneAt: map[string]time.Duration{}, verbose: verbose}
	n := 3 + s.rng.IntN(6)
	s.hosted = s.rng.IntN(4) == 0
	s.kinds[hostedStore] = s.hosted
	c := &s.config
	c.Job, c.LostGrace = "test", s.between(0, 4*time.Second)
	c.Elected, c.LeaseLag = !s.hosted, 3*time.Second
	c.LeaseTTL = []time.Duration{3 * time.Second, 10 * time.Second}[s.rng.IntN(2)]
	if s.hosted {
		c.PeerTimeout = c.LeaseTTL
	} else {
		c.ReturnTime = time.Second
	}
	c.SettleTimeout = max(10*time.Second, c.LeaseTTL) + 5*time.Second
	c.Restarts = restart.Policy{Max: s.rng.IntN(4)}
	c.NextWaiting = func(last time.Duration) time.Duration { return last + 10*time.Second }
	s.launched = s.rng.IntN(2) == 0
	start, nodes := n, s.layout(n)
	c.Tasks = tasksOf(nodes)
	switch s.rng.IntN(4) {
	case 0:
		if nodes = s.sameWorkers(nodes); s.launched {
			c.Tasks = tasksOf(nodes)
		}
		c.Spares = 1 + s.rng.IntN(n-2)
		c.Restarts.Max = 1 + s.rng.IntN(4)
	case 1:
		c.Replaceable = true
		c.Restarts.Max = 1 + s.rng.IntN(4)
	case 2:
		c.MinTasks, c.LastCall = 1+s.rng.IntN(c.Tasks-1), s.between(0, 5*time.Second)
		c.Replaceable = s.rng.IntN(2) == 0
		c.Restarts.Max = 1 + s.rng.IntN(4)
		for start = 3; tasksOf(nodes[:start]) < c.MinTasks; start++ {
		}
		start += s.rng.IntN(n - start + 1)
		s.kinds[elasticJob] = true
	}
	s.grace = s.between(0, 10*time.Second)
	c.LostGrace = min(c.LostGrace, s.grace)
	s.opsPerTxn = 128
	if s.rng.IntN(4) == 0 {
		s.opsPerTxn = 2 + s.rng.IntN(3)
	}
	if !s.hosted && s.rng.IntN(4) == 0 {
		s.interruptAtLoss()
	}
	if s.rng.IntN(6) == 0 {
		c.ExitTimeout = s.between(10*time.Second, 30*time.Second)
	}
	var given *record.Exports
	if s.rng.IntN(5) == 0 {
		given = &record.Exports{Files: true}
		s.kinds[exports] = true
	}
	add := func(i int, node string, tasks []record.Task) *agent {
		id := fmt.Sprint("agent-", len(s.agents))
		a := &agent{simulation: s, id: id, alive: true, runs: -1, host: s.hosted && len(s.agents) == 0, another: -time.Hour}
		a.self = record.Member{ID: id, Host: node, Node: node, PID: 1000 + len(s.agents), Tasks: tasks,
			LocalSize: record.Unknown, NodeRank: record.Unknown, Hosting: a.host, Exports: given, JoinWithin: time.Minute}
		if s.launched {
			a.self.LocalSize, a.self.NodeRank = len(nodes[i]), i
		}
		s.agents = append(s.agents, a)
		return a
	}
	late := -1                           // the last agent that the others wait for
	if start > 4 && s.rng.IntN(2) == 0 { // so that there are enough events
		s.kinds[lateStart] = true
		late = 1 + s.rng.IntN(start-1)
	}
	joinAt := func(a *agent, at time.Duration) {
		s.after(at, func() { a.now2(func() { a.join(s.now + time.Minute) }) })
	}
	alone := -1 // the node that has a task with an agent of its own
	if i := s.rng.IntN(start); c.Spares == 0 && len(nodes[i]) > 1 {
		alone = i
	}
	for i := range start {
		tasks := nodes[i]
		if i == alone {
			tasks = tasks[:len(tasks)-1]
		}
		a := add(i, fmt.Sprint("node", i), tasks)
		at := s.between(0, 3*time.Second)
		switch {
		case a.host:
			at = 0
			a.start(0, 0, nil)
		case i == late:
			at = s.between(10*time.Second, 50*time.Second)
		}
		s.kinds[joins] = true
		joinAt(a, at)
	}
	if alone >= 0 {
		s.kinds[lateTask] = true
		task := nodes[alone][len(nodes[alone])-1:]
		joinAt(add(alone, fmt.Sprint("node", alone), task), s.between(time.Second, 6*time.Second))
	}
	if late >= 0 && s.rng.IntN(2) == 0 {
		s.loseEarly()
	}
	newcomer := func(node int, host string) {
		if s.hosted && !s.agents[0].member {
			return // nobody finds the store before its agent has joined
		}
		tasks := nodes[node]
		if !s.launched && s.rng.IntN(4) == 0 {
			tasks = record.Unplaced(3)
		}
		add(node, host, tasks).join(s.now + 2*time.Minute)
	}
	for range 5 + s.rng.IntN(7) {
		s.disturb(newcomer, start)
	}
	return s
}

// layout is which tasks each of n nodes has: without a launcher one, otherwise 1 to 4, as many on
// each node or not, and with consecutive ranks or not.
func (s *simulation) layout(n int) (nodes [][]record.Task) {
	slots := 1 + s.rng.IntN(2)
	if !s.launched {
		for range n {
			nodes = append(nodes, record.Unplaced(slots))
		}
		return nodes
	}
	many, even, spread := s.rng.IntN(3) > 0, s.rng.IntN(2) == 0, s.rng.IntN(2) == 0
	size, rank := 1+s.rng.IntN(4), 0
	if !many {
		size, even = 1, true
	}
	for node := range n {
		if !even {
			size = 1 + s.rng.IntN(4)
		}
		s.kinds[manyTasks] = s.kinds[manyTasks] || size > 1
		var tasks []record.Task
		for local := range size {
			tasks = append(tasks, record.Task{Rank: rank, LocalRank: local, Slots: slots})
			if rank++; even && spread {
				s.kinds[interleaved] = s.kinds[interleaved] || size > 1
				tasks[local].Rank = node + local*n
			}
		}
		nodes = append(nodes, tasks)
	}
	return nodes
}

// sameWorkers gives all nodes 4 workers, in 1, 2 or 4 tasks.
func (s *simulation) sameWorkers(nodes [][]record.Task) [][]record.Task {
	if !s.launched {
		return nodes
	}
	var all [][]record.Task
	rank := 0
	for range nodes {
		size := []int{1, 2, 4}[s.rng.IntN(3)]
		s.kinds[manyTasks] = s.kinds[manyTasks] || size > 1
		var tasks []record.Task
		for local := range size {
			tasks = append(tasks, record.Task{Rank: rank, LocalRank: local, Slots: 4 / size})
			rank++
		}
		all = append(all, tasks)
	}
	return all
}

func tasksOf(nodes [][]record.Task) (n int) {
	for _, tasks := range nodes {
		n += len(tasks)
	}
	return n
}

// loseEarly adds the loss of the leader and of another agent, at about the same time, while all wait
// for one that comes late.
func (s *simulation) loseEarly() {
	at := s.between(3*time.Second, 10*time.Second)
	s.after(at, func() {
		var others []*agent
		for _, a := range s.agents {
			switch {
			case a.lead != nil && !a.host:
				s.kinds[lostLeader] = true
				a.after(s.between(0, time.Second), a.die)
			case a.member && a.alive && !a.host:
				others = append(others, a)
			}
		}
		if len(others) > 0 {
			others[s.rng.IntN(len(others))].die()
		}
	})
}

// disturb adds something that happens to the job.
func (s *simulation) disturb(join func(node int, host string), start int) {
	at := s.between(0, 70*time.Second)
	// Most agents have joined by then, and are settled, so that there are enough events.
	joined, settled := max(at, 3*time.Second), max(at, 6*time.Second)
	i, victim := s.rng.IntN(start), s.rng.IntN(len(s.agents))
	pick := func() *agent { return s.agents[victim] }
	brief, long := s.between(10*time.Millisecond, 2*time.Second), s.between(2*time.Second, 40*time.Second)
	d := brief
	if s.rng.IntN(2) == 0 {
		d = long
	}
	newcomer := func() {
		s.kinds[newcomers] = true
		host := fmt.Sprint("node", i)
		if s.rng.IntN(3) == 0 {
			host = fmt.Sprint("other", len(s.agents))
		}
		join(i, host)
	}
	switch s.rng.IntN(20) {
	case 0, 1:
		s.after(joined, func() { pick().die() })
	case 2:
		s.after(at, func() { s.kinds[silences] = true; pick().silence(d) })
	case 3:
		s.after(at, func() { s.kinds[freezes] = true; pick().freeze(d) })
	case 4, 5:
		s.after(at, func() { a := pick(); a.now2(func() { a.failWorker(a.runs) }) })
	case 6:
		s.after(settled, func() {
			s.kinds[sigterm] = true
			a := pick()
			a.now2(a.terminate)
			switch soon := s.between(0, 3*time.Second); s.rng.IntN(6) {
			case 0:
				a.after(soon, a.die)
			case 1:
				a.after(soon, func() { a.silence(long) })
			case 2:
				a.after(soon, func() { a.freezeAlone(long) })
			case 3:
				a.after(soon, func() { a.breakConnection() })
			}
		})
	case 7:
		s.after(settled, func() {
			s.kinds[sigtermAll] = true
			for _, a := range s.agents {
				a.after(s.between(0, 20*time.Millisecond), func() { a.now2(a.terminate) })
			}
		})
	case 8, 9:
		s.after(at, func() {
			for _, a := range s.agents {
				if a.lead != nil && !a.host {
					s.kinds[lostLeader] = true
					switch s.rng.IntN(3) {
					case 0:
						a.die()
					case 1:
						s.kinds[silences] = true
						a.silence(d)
					case 2:
						s.kinds[freezes] = true
						a.freeze(d)
					}
					return
				}
			}
		})
	case 10, 11:
		s.after(at, newcomer)
	case 12:
		s.after(joined, func() { pick().die(); s.after(brief, newcomer) })
	case 13:
		s.after(at, s.revokeAll)
	case 15:
		s.after(at, func() { pick().freezeAlone(2 * long) })
	case 16, 17:
		s.after(joined, func() { pick().breakConnection() })
		s.after(joined, func() { pick().revokeOne() })
	case 18:
		s.after(at, func() {
			for _, a := range s.agents {
				if a.lead != nil {
					a.lead.interrupt()
					return
				}
			}
		})
	case 19:
		s.after(joined, func() { pick().breakConnection() })
		if s.rng.IntN(2) == 0 {
			s.after(settled, func() { s.cutAll(newcomer) })
		}
	case 14: // while the next attempt gathers
		s.after(at, func() { a := pick(); a.now2(func() { a.failWorker(a.runs) }) })
		s.after(at+s.between(0, 5*time.Second), func() {
			s.kinds[sigterm] = true
			a := s.agents[s.rng.IntN(start)]
			a.now2(a.terminate)
		})
	}
}

// check runs the schedule, and checks what must be true at its end.
func (s *simulation) check() {
	elect := &watcher{}
	last := 0
	elect.wake = func() {
		elect.pending = false
		for ; last < len(s.log); last++ {
			for _, c := range s.log[last].changes {
				if strings.HasPrefix(c.Key, "agent/") && !s.hosted {
					s.noteAgent(c.Value)
				}
			}
		}
	}
	s.watchers = append(s.watchers, elect)
	s.run()
	if s.problem != "" {
		return
	}
	if s.queue.Len() > 0 {
		s.fail("there is no end")
	}
	done := false
	for _, a := range s.agents {
		if a.alive && !a.over && a.member && !a.storeLost() {
			s.fail("%s hangs: %v", a.id, a)
		}
		done = done || a.alive && a.over
	}
	if !s.hosted && len(s.keys) > 0 {
		for key := range s.keys {
			s.fail("key %s is left", key)
		}
	}
	if s.ends[record.Done] {
		s.kinds[successes] = true
	}
	if done {
		s.kinds[leaves] = true
	}
}

// noteAgent lets the agents elect a leader when one is gone.
func (s *simulation) noteAgent(value any) {
	if value != nil {
		return
	}
	for _, a := range s.agents {
		a.later(s.config.ReturnTime, a.elect)
	}
}

var (
	simSeed  = flag.Uint64("seed", 0, "the schedule to run, and to print")
	simCount = flag.Int("schedules", 2000, "how many schedules to run")
	simBad   = flag.Int("bad", 1, "how many schedules may fail before it stops")
	simFirst = flag.Uint64("first", 1, "the first seed")
)

// fewEvents is too few for a schedule to count: at most 1 in 10,000 has fewer.
const fewEvents = 30

func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		s := newSimulation(*simSeed, true)
		s.check()
		fmt.Println(strings.Join(s.trace, "\n"))
		if s.problem != "" {
			t.Error(s.problem)
		}
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	began, used := time.Now(), cpuTime()
	var mu sync.Mutex
	var counts [numKinds]int
	ends := map[record.Kind]int{}
	events, short, bad := 0, 0, 0
	next := *simFirst
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				mu.Lock()
				seed := next
				next++
				stop := seed >= *simFirst+uint64(*simCount) || bad >= *simBad
				mu.Unlock()
				if stop {
					return
				}
				s := newSimulation(seed, false)
				s.check()
				mu.Lock()
				if s.problem != "" {
					bad++
					t.Errorf("seed %d: %s", seed, s.problem)
				}
				for k, happened := range s.kinds {
					if happened {
						counts[k]++
					}
				}
				for k := range s.ends {
					ends[k]++
				}
				events += s.done
				if s.done < fewEvents {
					short++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	n := int(next - *simFirst)
	took := time.Since(began)
	used = cpuTime() - used
	t.Logf("%d schedules, %.0f a minute, %.0f per minute of two cores, %d events each; %d have fewer than %d",
		n, float64(n)/took.Minutes(), 2*float64(n)/used.Minutes(), events/max(n, 1), short, fewEvents)
	for k, count := range counts {
		share := float64(count) / float64(n)
		t.Logf("%-24s %5.1f %%", kindNames[k], 100*share)
		if share < 0.05 && !slices.Contains(rare, kind(k)) && bad == 0 && n > 1000 {
			t.Errorf("%s is in less than 5 %% of the schedules", kindNames[k])
		}
	}
	for _, k := range []record.Kind{
		record.Done, record.Failed, record.Ended, record.Lost, record.Unready, record.Incomplete, record.Straggling,
		record.Moved,
	} {
		t.Logf("verdict %-16s %5.1f %%", k, 100*float64(ends[k])/float64(n))
	}
	if short > n/10000 && bad == 0 {
		t.Errorf("%d of %d schedules have fewer than %d events", short, n, fewEvents)
	}
}

// cpuTime is that of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
