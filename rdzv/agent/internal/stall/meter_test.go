package stall

import (
	"testing"
	"time"
)

// A meter counts the time in which workers run and do nothing, and neither that in which its process
// was stopped nor that in which a worker had no CPU.
func TestMeter(t *testing.T) {
	const step = time.Second
	begin := time.Unix(1e9, 0)
	type look struct {
		after  time.Duration // the look before
		s      signs
		all    bool
		waited time.Duration
		silent time.Duration
		broken int
	}
	at := func(d time.Duration) signs { return signs{output: begin.Add(d), running: 2} }
	with := func(s signs, change func(*signs)) signs { change(&s); return s }
	reached := with(at(0), func(s *signs) { s.reached = 1 })
	progress := with(reached, func(s *signs) { s.progress = 1 })
	fewer := with(progress, func(s *signs) { s.running = 1 })
	for name, looks := range map[string][]look{
		"silent": {
			{0, at(0), true, 0, 0, 1}, {step, at(0), true, 0, step, 1}, {step, at(0), true, 0, 2 * step, 1},
		},
		"output": {
			{0, at(0), true, 0, 0, 1}, {step, at(0), true, 0, step, 1},
			{step, at(1800 * time.Millisecond), true, 0, 200 * time.Millisecond, 2},
			{step, at(1800 * time.Millisecond), true, 0, 1200 * time.Millisecond, 2},
		},
		"the host's clock is changed": {
			{0, at(0), true, 0, 0, 1}, {step, at(time.Hour), true, 0, 0, 2}, {step, at(time.Hour), true, 0, step, 2},
			{step, at(-time.Hour), true, 0, step, 3}, // within the last step, no more is known
		},
		"stopped": {
			{0, at(0), true, 0, 0, 1}, {step, at(0), true, 0, step, 1},
			{time.Hour, at(0), true, 0, 2 * step, 1}, {step, at(0), true, 0, 3 * step, 1},
		},
		"stopped after output": {
			{0, at(0), true, 0, 0, 1}, {time.Hour, at(time.Second), true, 0, step, 2},
		},
		"without a CPU": {
			{0, at(0), true, 0, 0, 1}, {step, at(0), true, 0, step, 1},
			{step, at(0), true, step, step, 1},                 // for the whole step
			{step, at(0), true, step / 4, 7 * step / 4, 1},     // for a part of it
			{step, at(0), true, 3 * step / 2, 5 * step / 4, 1}, // it had begun before
			{step, at(0), true, time.Hour, 0, 1},               // before the silence
			{step, at(5800 * time.Millisecond), true, 100 * time.Millisecond, 100 * time.Millisecond, 2},
		},
		"other signs": {
			{0, at(0), true, 0, 0, 1}, {step, at(0), true, 0, step, 1}, {step, reached, true, 0, 0, 2},
			{step, reached, true, 0, step, 2}, {step, progress, true, 0, 0, 3},
			{step, progress, true, 0, step, 3}, {step, fewer, false, 0, 0, 4},
			{step, fewer, false, 0, 0, 5},
		},
	} {
		m, now := meter{step: step, at: begin}, begin
		for i, l := range looks {
			now = now.Add(l.after)
			m.note(now, l.s, l.all, l.waited)
			if m.silent != l.silent || m.broken != l.broken {
				t.Errorf("%s, look %d: silent for %v, broken %d times, want %v, %d",
					name, i, m.silent, m.broken, l.silent, l.broken)
			}
		}
	}
}
