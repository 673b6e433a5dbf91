// Package tally counts the workers of an agent that have started and ended in one attempt.
package tally

import (
	"slices"
	"sync"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/status"
)

// Process is a worker that has started.
type Process struct{ Rank, LocalRank, PID int }

// Tally counts them. The zero value has none.
type Tally struct {
	Number int // of the agent's workers
	// Settle gets all workers when the last one has ended. Progress gets those that have ended while
	// others still run, so that these can be named as stragglers.
	Settle, Progress func([]rdzv.Worker)

	mu      sync.Mutex
	started []Process
	began   []time.Time // when each of started has started
	ended   []rdzv.Worker
	at      []time.Time       // when each of ended has ended
	reached map[int]time.Time // when ranks were first seen to have reached init_process_group
	timer   *time.Timer       // nil until some but not all have ended
	closed  bool              // nothing more is reported than what wg waits for
	wg      sync.WaitGroup    // of what is still to be reported
}

// Start records the start of a worker.
func (t *Tally) Start(p Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started, t.began = append(t.started, p), append(t.began, time.Now())
}

// Running lists the workers that have started and not ended.
func (t *Tally) Running() (list []Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.started {
		if !slices.ContainsFunc(t.ended, func(w rdzv.Worker) bool { return w.Rank == p.Rank }) {
			list = append(list, p)
		}
	}
	return list
}

// PIDs are those of processes.
func PIDs(list []Process) []int {
	pids := make([]int, len(list))
	for i, p := range list {
		pids[i] = p.PID
	}
	return pids
}

// Rank0 is the process of rank 0; 0 if it does not run, or is not a worker of this agent.
func (t *Tally) Rank0() int {
	for _, p := range t.Running() {
		if p.Rank == 0 {
			return p.PID
		}
	}
	return 0
}

// progressDelay is how long after a worker's end it is reported to the job if other workers of the
// agent still run. Workers that end together are reported together, when the last has ended.
const progressDelay = time.Second

// End records the end of a worker. After that of the last one it waits for Settle, which may take
// long if the store does not answer: the others who use the tally do not wait for it.
func (t *Tally) End(worker rdzv.Worker) {
	if all := t.end(worker); all != nil {
		t.Settle(all)
	}
}

// end records the end of a worker. If it was the last one it returns how all have ended.
func (t *Tally) end(worker rdzv.Worker) (all []rdzv.Worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.at = append(t.ended, worker), append(t.at, time.Now())
	switch {
	case len(t.ended) == t.Number:
		return t.withAges()
	case t.timer == nil:
		t.timer = time.AfterFunc(progressDelay, t.beginProgress)
	default:
		t.timer.Reset(progressDelay)
	}
	return nil
}

// withAges are those that have ended, with how long ago that was.
func (t *Tally) withAges() []rdzv.Worker {
	list := slices.Clone(t.ended)
	for i, at := range t.at {
		list[i].Age = rdzv.Seconds(time.Since(at))
	}
	return list
}

// beginProgress reports progress, unless Close waits already for what is reported.
func (t *Tally) beginProgress() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.wg.Go(t.progress)
	}
}

func (t *Tally) progress() {
	t.mu.Lock()
	list := slices.Clone(t.ended)
	t.mu.Unlock()
	if len(list) < t.Number {
		t.Progress(list)
	}
}

// Go runs f, which still reports something of a worker's end.
func (t *Tally) Go(f func()) { t.wg.Go(f) }

// Close waits until nothing more is reported.
func (t *Tally) Close() {
	t.mu.Lock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.wg.Wait()
}

// Reached records that a rank has reached init_process_group.
func (t *Tally) Reached(rank int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reached == nil {
		t.reached = map[int]time.Time{}
	}
	if t.reached[rank].IsZero() {
		t.reached[rank] = time.Now()
	}
}

// Times are when a rank has started, reached init_process_group and ended; zero if it has not, or
// that is not known. The end of one whose failure is held back is before its End.
func (t *Tally) Times(rank int) (start, init, end time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, p := range t.started {
		if p.Rank == rank {
			start = t.began[i]
		}
	}
	for i, w := range t.ended {
		if w.Rank == rank && !start.IsZero() {
			if end = t.at[i]; w.RanFor > 0 {
				end = start.Add(time.Duration(w.RanFor))
			}
		}
	}
	return start, t.reached[rank], end
}

// Show enters what is known into the rows of the agent's workers.
func (t *Tally) Show(ranks []status.Rank) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := func(rank int) *status.Rank {
		return &ranks[slices.IndexFunc(ranks, func(r status.Rank) bool { return r.Rank == rank })]
	}
	for i, p := range t.started {
		if r := row(p.Rank); r.State == status.Waiting {
			r.State, r.PID, r.Seconds = status.Alive, p.PID, time.Since(t.began[i]).Seconds()
		}
	}
	for i, w := range t.ended {
		r := row(w.Rank)
		*r = status.Rank{
			Rank: w.Rank, Host: r.Host, PID: w.PID, AgentPID: r.AgentPID, State: status.Exited,
			Seconds: time.Since(t.at[i]).Seconds(), Signal: w.Signal,
			ExitCode: new(w.Code),
		}
	}
}
