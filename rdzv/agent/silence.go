package agent

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"rdzv/internal/procfs"
	"rdzv/rdzv/agent/internal/ras"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/stacks"
)

// meter measures for how long workers have been silent. It counts in steps: one that takes longer
// than two, because this process was stopped, as by Ctrl-Z or a suspended batch job, counts as one.
type meter struct {
	step   time.Duration
	at     time.Time // of the last look
	silent time.Duration
	broken int // how often the silence has been broken
	seen   signs
}

// signs are what the workers of an agent have done.
type signs struct {
	output   time.Time // when one has last written something
	running  int
	reached  int // init_process_group
	progress int // how often NCCL's counts have been seen to change
}

// look notes what the workers have done by now. all tells whether all of them run: the clock stands
// still otherwise. waited is how long one of them has waited for a CPU since the last look, as far
// as the kernel has told it by now: it does so when the wait is over, which may have begun before
// the last look.
func (m *meter) look(now time.Time, s signs, all bool, waited time.Duration) {
	took := max(0, now.Sub(m.at))
	if took > 2*m.step {
		took = m.step
	}
	switch output := s.output != m.seen.output; {
	case !all, s.running != m.seen.running, s.reached > m.seen.reached, s.progress > m.seen.progress:
		m.silent, m.broken = 0, m.broken+1
	case output:
		// The output's time is that of the host's clock, which may be changed.
		m.silent, m.broken = min(max(0, now.Sub(s.output)), took), m.broken+1
	default:
		m.silent += took
	}
	m.silent = max(0, m.silent-waited)
	m.at, m.seen = now, s
}

// silence is the silence of this agent's workers in one attempt.
type silence struct {
	*workers
	read bool // all that the workers write is read

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

// measureSilence begins to measure, in steps.
func (w *workers) measureSilence() *silence {
	step := min(max(w.local.Config.StallTimeout/20, shortestStep), longestStep)
	s := &silence{workers: w, meter: meter{step: step, at: time.Now()}}
	s.read = w.local.Config.Tag != nil
	if !s.read {
		s.read = len(w.logs) > 0
		for _, log := range w.logs {
			s.read = s.read && log != nil
		}
	}
	if !s.read {
		w.events.diagnose(Warning, errors.New("cannot tell whether the job stalls: the output of the "+
			"workers on this node is not read"))
	}
	return s
}

// look returns what the meter shows now, and whether all workers run.
func (s *silence) look() (m meter, running bool) {
	now, list := time.Now(), s.ended.running()
	all := len(list) == s.local.Workers
	signs := signs{running: len(list)}
	for i := range s.outputs {
		if at := s.outputs[i].Time(); at.After(signs.output) {
			signs.output = at
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	signs.progress, signs.reached = s.counts, s.meter.seen.reached
	if all && s.world.Size > 1 && signs.reached < len(list) {
		signs.reached = s.reachedInit(list)
	}
	s.meter.look(now, signs, all, s.waits.since(procfs.System, pidsOf(list)))
	return s.meter, all
}

// waits is how long processes have waited for a CPU by now, by PID.
type waits map[int]time.Duration

// since is how long the main thread of one of the processes, or of the Python below it, has waited
// since the last look: the one that waited longest. A process that was not there has begun since.
func (w *waits) since(proc fs.FS, pids []int) (longest time.Duration) {
	now := waits{}
	for _, pid := range pids {
		pid = cmp.Or(stacks.FindPython(proc, pid), pid)
		now[pid] = procfs.ReadScheduling(proc, pid).Waited
		longest = max(longest, now[pid]-(*w)[pid])
	}
	*w = now
	return longest
}

func pidsOf(list []WorkerStarted) []int {
	pids := make([]int, len(list))
	for i, worker := range list {
		pids[i] = worker.PID
	}
	return pids
}

// reachedInit counts the workers that have reached init_process_group.
func (s *silence) reachedInit(list []WorkerStarted) (n int) {
	for _, reached := range masterport.Reached(procfs.System, s.world.MasterPort, pidsOf(list)) {
		if reached {
			n++
		}
	}
	return n
}

// watchRAS asks NCCL's RAS service while the workers are silent, until ctx ends: collective
// operations that are launched are progress.
func (s *silence) watchRAS(ctx context.Context) {
	if s.rasAddr == "" || !s.asksRAS() {
		return
	}
	every := max(2*s.meter.step, time.Second)
	for await(ctx, time.After(every)) {
		if m, _ := s.look(); m.silent < every/2 {
			continue
		}
		s.sampleRAS(ctx)
	}
}

// sampleRAS asks the service once.
func (s *silence) sampleRAS(ctx context.Context) {
	r, err := s.askRAS(ctx, rasPatience, rasLimit)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.known = false
		return
	}
	if s.known && ras.Progressed(s.ras, r) {
		s.counts++
	}
	s.ras, s.known = r, r.Count > 0
}
