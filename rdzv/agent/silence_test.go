package agent

import (
	"testing"
	"time"
)

// A meter counts the time in which workers run and do nothing, and not that in which its process was
// stopped.
func TestMeter(t *testing.T) {
	const step = time.Second
	begin := time.Unix(1e9, 0)
	type look struct {
		after   time.Duration // the look before
		s       signs
		all     bool
		silent  time.Duration
		counted time.Duration
	}
	at := func(d time.Duration) signs { return signs{output: begin.Add(d), running: 2} }
	with := func(s signs, change func(*signs)) signs { change(&s); return s }
	reached := with(at(0), func(s *signs) { s.reached = 1 })
	progress := with(reached, func(s *signs) { s.progress = 1 })
	fewer := with(progress, func(s *signs) { s.running = 1 })
	for name, looks := range map[string][]look{
		"silent": {
			{0, at(0), true, 0, 0}, {step, at(0), true, step, step}, {step, at(0), true, 2 * step, 2 * step},
		},
		"output": {
			{0, at(0), true, 0, 0}, {step, at(0), true, step, step},
			{step, at(1800 * time.Millisecond), true, 200 * time.Millisecond, 2 * step},
			{step, at(1800 * time.Millisecond), true, 1200 * time.Millisecond, 3 * step},
		},
		"the host's clock is changed": {
			{0, at(0), true, 0, 0}, {step, at(time.Hour), true, 0, step}, {step, at(time.Hour), true, step, 2 * step},
			{step, at(-time.Hour), true, step, 3 * step}, // within the last step, no more is known
		},
		"stopped": {
			{0, at(0), true, 0, 0}, {step, at(0), true, step, step},
			{time.Hour, at(0), true, 2 * step, 2 * step}, {step, at(0), true, 3 * step, 3 * step},
		},
		"stopped after output": {
			{0, at(0), true, 0, 0}, {time.Hour, at(time.Second), true, step, step},
		},
		"other signs": {
			{0, at(0), true, 0, 0}, {step, at(0), true, step, step}, {step, reached, true, 0, 2 * step},
			{step, reached, true, step, 3 * step}, {step, progress, true, 0, 4 * step},
			{step, progress, true, step, 5 * step}, {step, fewer, false, 0, 6 * step},
			{step, fewer, false, 0, 7 * step},
		},
	} {
		m, now := meter{step: step, at: begin}, begin
		for i, l := range looks {
			now = now.Add(l.after)
			m.look(now, l.s, l.all)
			if i == 0 { // the first one has seen something new
				m.silent = 0
			}
			if m.silent != l.silent || m.counted != l.counted {
				t.Errorf("%s, look %d: silent for %v of %v, want %v of %v",
					name, i, m.silent, m.counted, l.silent, l.counted)
			}
		}
	}
}
