package rdzv

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// initTimes are when, after rank 0 has reached init_process_group, the leader asks the agents which
// of their workers have not, and when it reports these.
type initTimes struct {
	ask    time.Duration
	report []time.Duration
}

var defaultInitTimes = initTimes{
	8 * time.Second, []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute},
}

// initWatch is what the leader knows about which workers have reached init_process_group. Nothing
// counts until rank 0 has, which serves the store there: without it no other rank can have
// connected to that, so that what looks like it is the port of another program.
type initWatch struct {
	absence  absence
	begin    time.Time        // when rank 0 reached it; zero before
	ask      <-chan time.Time // nil before begin
	report   <-chan time.Time // nil before begin, unless others try to connect to rank 0
	times    []time.Duration  // of this report and the later ones, since begin or absence.since
	reported bool             // that ranks are missing
	done     bool             // that none is missing any more has been reported
}

// readReached handles which workers of an agent have reached init_process_group. It ignores a value
// that cannot be decoded, because nothing but a line for people depends on it.
func (l *Leader) readReached(ctx context.Context, id string, value []byte) error {
	m := l.members[id]
	r, err := decode[reached](value)
	if m == nil || err != nil || l.config.Init == nil || l.init.done || l.verdict != nil {
		return nil
	}
	m.reached = &r
	isRank0 := func(u Unreached) bool { return u.Rank == 0 }
	if l.init.begin.IsZero() && m.seat.Rank == 0 && !slices.ContainsFunc(r.Missing, isRank0) {
		l.beginInit()
	}
	if l.init.reported {
		return l.reportAllReached(ctx)
	}
	return nil
}

// beginInit begins to count. If it has been reported that rank 0 was late, what follows is reported
// soon.
func (l *Leader) beginInit() {
	t := l.config.initTimes
	l.init.begin, l.init.times = time.Now(), t.report
	if l.init.absence.reported {
		l.init.times = append([]time.Duration{t.report[0] - t.ask}, t.report...)
		t.ask = 0
	}
	l.init.ask = time.After(t.ask)
	l.init.report = time.After(l.init.times[0])
}

// reportAllReached reports that no rank is missing any more.
func (l *Leader) reportAllReached(ctx context.Context) error {
	p := l.initProgress()
	if p.Reached < p.Ranks {
		return nil
	}
	l.init.done = true
	return l.tell(ctx, p)
}

// tell reports something to the caller, and to the agent of rank 0.
func (l *Leader) tell(ctx context.Context, p InitProgress) error {
	l.config.Init(p)
	if err := l.commit(ctx, nil, l.put(l.keys.init(), encode(p))); err != nil {
		return fmt.Errorf("cannot tell which ranks of job %q are missing: %w", l.config.Job, err)
	}
	return nil
}

// askForInit asks the agents which of their workers are missing. One that does not answer has none.
func (l *Leader) askForInit(ctx context.Context) error {
	if l.verdict != nil {
		return nil
	}
	if err := l.commit(ctx, nil, l.put(l.keys.look(), encode(look{}))); err != nil {
		return fmt.Errorf("cannot ask which ranks of job %q are missing: %w", l.config.Job, err)
	}
	return nil
}

// reportInit reports which ranks are missing, if there are any. If there are none an agent may
// still answer late.
func (l *Leader) reportInit(ctx context.Context) error {
	if l.verdict != nil || l.init.done {
		return nil
	}
	if l.init.begin.IsZero() {
		return l.reportAbsence(ctx)
	}
	l.nextReport(l.init.begin)
	if p := l.initProgress(); p.Reached < p.Ranks {
		l.init.reported = true
		return l.tell(ctx, p)
	}
	if l.init.absence.reported {
		return l.reportAllReached(ctx)
	}
	return nil
}

// nextReport schedules the next report of what began at a time.
func (l *Leader) nextReport(began time.Time) {
	l.init.times = l.init.times[1:]
	if len(l.init.times) > 0 {
		l.init.report = time.After(time.Until(began.Add(l.init.times[0])))
	}
}

func (l *Leader) initProgress() InitProgress {
	p := InitProgress{Waited: time.Since(l.init.begin)}
	missing, hosts := map[int][]int{}, map[int]string{} // ranks and name of each node, by node rank
	first := func(u Unreached) bool { return len(missing) == 0 || u.Rank < p.First.Rank }
	for _, m := range l.joined {
		list, node := m.unreached(), m.seat.Node
		p.Ranks += m.seat.Slots
		p.Reached += m.seat.Slots - len(list)
		for _, u := range list {
			if first(u) {
				p.First, p.Host = u, m.Host
			}
			missing[node], hosts[node] = append(missing[node], u.Rank), m.Host
		}
	}
	for _, node := range slices.Sorted(maps.Keys(missing)) {
		p.Missing = append(p.Missing, NodeRanks{hosts[node], ranges(missing[node])})
	}
	p.Missing, p.More = cut(p.Missing)
	return p
}

// unreached are the workers of an agent that have not reached init_process_group, as far as known.
func (m *memberState) unreached() []Unreached {
	if m.settled || m.lost || m.reached == nil {
		return nil
	}
	return m.reached.Missing
}

// InitProgress says which workers have not reached torch's init_process_group some time after rank
// 0 did. A worker has reached it when it has connected to MASTER_PORT, or has ended.
type InitProgress struct {
	Ranks   int           // number of workers
	Reached int           // how many of them have reached it
	Waited  time.Duration // since rank 0 reached it
	// Absent says that rank 0 has not reached it, and is the one in Missing: Reached of the others
	// have been trying to connect to it, all for Waited.
	Absent bool
	// Missing are the ranks that have not, by node, at most 8 nodes.
	Missing []NodeRanks
	More    int // number of other nodes
	// First is the lowest of them, and Host its node.
	First Unreached
	Host  string
}

// Unreached is a worker that has not reached init_process_group.
type Unreached struct {
	Rank int `json:"rank"`
	// Python is the process that runs Python: the worker, or a descendant of it; 0 if there is none.
	Python int `json:"python,omitempty"`
}

// reached is the value of reached/ID: all other workers of the agent have reached
// init_process_group.
type reached struct {
	Missing []Unreached `json:"missing,omitempty"`
}

// look is the value of signal/look.
type look struct{}

// String returns a line for people: "rank 5 (node2) has not reached init_process_group; 7 of 8
// ranks have been waiting for 12s".
func (p InitProgress) String() string {
	waited := p.Waited.Round(time.Second)
	if p.Absent {
		return fmt.Sprintf("rank 0 (%s) does not listen on MASTER_PORT yet; %d of %d ranks %s been "+
			"trying to connect for %v", p.Host, p.Reached, p.Ranks, have(p.Reached), waited)
	}
	missing := p.Ranks - p.Reached
	if missing == 0 {
		return fmt.Sprintf("all %d ranks have reached init_process_group by now, %v after rank 0 did",
			p.Ranks, waited)
	}
	names := make([]string, len(p.Missing))
	for i, node := range p.Missing {
		names[i] = fmt.Sprintf("%s (%s)", node.Ranks, node.Host)
	}
	ranks := list(names, p.More)
	if p.More > 0 {
		ranks += plural(" node", p.More)
	}
	return fmt.Sprintf(
		"%s %s %s not reached init_process_group; %d of %d ranks %s been waiting for %v",
		plural("rank", missing), ranks, have(missing), p.Reached, p.Ranks, have(p.Reached), waited)
}

func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}
