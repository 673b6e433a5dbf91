package stall

import "time"

// meter measures for how long workers have been silent. It counts in steps: one that takes longer
// than two, because this process was stopped, as by Ctrl-Z or a suspended batch job, counts as one.
type meter struct {
	step   time.Duration
	at     time.Time // of the last look
	silent time.Duration
	broken int // how often the silence has been broken
	seen   signs
}

// signs are the observations by whose changes a meter recognises that workers make progress.
type signs struct {
	output   time.Time // when one has last written something
	running  int
	reached  int // init_process_group
	progress int // how often NCCL's counts have been seen to change
}

// note notes what the workers have done by now. all tells whether all of them run: the clock stands
// still otherwise. waited is how long one of them has waited for a CPU as far as that has become
// known since the last look: the wait may have begun before it.
func (m *meter) note(now time.Time, s signs, all bool, waited time.Duration) {
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
