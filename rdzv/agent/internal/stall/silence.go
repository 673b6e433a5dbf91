package stall

import (
	"context"
	"io/fs"
	"sync"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/collectives"
	"rdzv/rdzv/agent/internal/ras"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/agent/internal/wait"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/status"
)

// Workers are the workers of an agent in one attempt.
type Workers struct {
	Proc   fs.FS // /proc
	World  rdzv.World
	Tally  *tally.Tally
	Output func() time.Time // when one has last written something
	Read   bool             // all that they write is read
	// Traceback is the last one that the i-th worker has printed, nil if there is none.
	Traceback func(i int) *status.Traceback
	RAS       *collectives.Service
}

// Silence measures the silence of the workers of an agent.
type Silence struct {
	Workers

	mu     sync.Mutex
	meter  meter
	waits  waits
	ras    ras.Report // the last one
	known  bool       // RAS has answered
	counts int        // how often it has told progress
}

// The meter's steps are a twentieth of the time after which workers have stalled, within limits.
const (
	shortestStep = 100 * time.Millisecond
	longestStep  = 30 * time.Second
)

// Measure begins to measure, in steps that suit a limit.
func Measure(w Workers, limit time.Duration) *Silence {
	step := min(max(limit/20, shortestStep), longestStep)
	return &Silence{Workers: w, meter: meter{step: step, at: time.Now()}}
}

// Answer is an agent's JSON answer to Question. Watch combines the answers of all agents in one.
type Answer struct {
	Silent  time.Duration `json:"silent"`
	Running bool          `json:"running"` // all of its workers run
	Read    bool          `json:"read"`    // and all that they write is read
	Broken  int           `json:"broken"`  // how often the silence has been broken
	// Traceback is the earliest of the last tracebacks of its workers, and Rank the rank that has
	// printed it; nil if there is none.
	Traceback *status.Traceback `json:"traceback,omitempty"`
	Rank      int               `json:"rank"`
	Host      string            `json:"-"` // of that rank; Watch sets it
}

// Question asks an agent for the silence of its workers.
const Question = "silence"

// Answer answers another agent. nil is the silence of an agent whose workers do not run yet or any
// more.
func (s *Silence) Answer() Answer {
	if s == nil {
		return Answer{}
	}
	m, running := s.now()
	a := Answer{Silent: m.silent, Running: running, Read: s.Read, Broken: m.broken}
	for i := range s.Tally.Number {
		if t := s.Traceback(i); t != nil && (a.Traceback == nil || t.Seconds > a.Traceback.Seconds) {
			a.Traceback, a.Rank = t, s.World.Seat.RankOf(i)
		}
	}
	return a
}

// now returns what the meter shows now, and whether all workers run.
func (s *Silence) now() (m meter, running bool) {
	now, list := time.Now(), s.Tally.Running()
	all := len(list) == s.Tally.Number
	signs := signs{running: len(list), output: s.Output()}
	s.mu.Lock()
	defer s.mu.Unlock()
	signs.progress, signs.reached = s.counts, s.meter.seen.reached
	if all && s.World.Size > 1 && signs.reached < len(list) {
		signs.reached = s.reachedInit(list)
	}
	s.meter.note(now, signs, all, s.waits.since(now, s.Proc, tally.PIDs(list)))
	return s.meter, all
}

// reachedInit counts the workers that have reached init_process_group.
func (s *Silence) reachedInit(list []tally.Process) (n int) {
	for _, reached := range masterport.Reached(s.Proc, s.World.MasterPort, tally.PIDs(list)) {
		if reached {
			n++
		}
	}
	return n
}

// watchRAS asks NCCL's RAS service while the workers are silent, until ctx ends: collective
// operations that are launched are progress.
func (s *Silence) watchRAS(ctx context.Context) {
	if !s.RAS.Asked() {
		return
	}
	every := max(2*s.meter.step, time.Second)
	for wait.For(ctx, time.After(every)) {
		if m, _ := s.now(); m.silent < every/2 {
			continue
		}
		s.sampleRAS(ctx)
	}
}

// sampleRAS asks the service once.
func (s *Silence) sampleRAS(ctx context.Context) {
	r, err := s.RAS.Ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.known = false
		return
	}
	if s.known && ras.Progressed(s.ras, r) {
		s.counts++
	}
	s.ras, s.known = r, len(r.Comms) > 0
}
