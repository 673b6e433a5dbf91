package agent

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/inspect"
	"rdzv/rdzv/stacks"
)

// StallAction is what happens when the workers of a job have stalled.
type StallAction string

const (
	StallEnd    StallAction = "end"    // the attempt ends, as after a failure
	StallStacks StallAction = "stacks" // their stacks are reported, once per stall
)

// An attempt has stalled when for Config.StallTimeout all of its workers ran, and none has written
// anything, reached init_process_group, ended, or launched a collective operation of which NCCL
// tells. Each agent measures the silence of its own workers. When those of rank 0's agent have been
// silent for that long, that agent asks the others: the shortest silence is that of the job. A job
// whose rank 0 writes pays for no question.

// silenceQuestion is the question; answerSilence answers it.
const silenceQuestion = "silence"

// silenceAnswer is what an agent answers.
type silenceAnswer struct {
	Silent  time.Duration `json:"silent"`
	Running bool          `json:"running"` // all of its workers run
	Read    bool          `json:"read"`    // and all that they write is read
	Broken  int           `json:"broken"`  // how often the silence has been broken
	Writing int           `json:"writing"` // number of flight recorders that have yet to write
}

// answerSilence answers another agent. An agent whose workers do not run yet or any more has none.
func (o *observed) answerSilence(ctx context.Context) silenceAnswer {
	o.mu.Lock()
	s := o.silence
	o.mu.Unlock()
	if s == nil {
		return silenceAnswer{}
	}
	a := silenceAnswer{Read: s.read, Writing: s.unwritten(ctx)}
	m, running := s.look()
	a.Silent, a.Broken, a.Running = m.silent, m.broken, running
	return a
}

// stallWatch finds out whether the attempt has stalled. Only rank 0's agent asks.
type stallWatch struct {
	*silence
	timeout time.Duration
	next    time.Duration // the silence of this agent's workers at which it asks again
	told    int           // the sum of broken when a stall was reported; -1 if none was
	number  int           // of stalls of this attempt
	began   time.Time
}

// watchStall watches for a stall until stop.
func (w *workers) watchStall() (stop func()) {
	limit := w.local.Config.StallTimeout
	if limit == 0 {
		return func() {}
	}
	s := &stallWatch{
		silence: w.measureSilence(), timeout: limit, next: limit, told: -1, began: time.Now(),
	}
	w.observed.measures(s.silence)
	ctx, cancel := context.WithCancel(w.session.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.run(ctx) })
	wg.Go(func() { s.watchRAS(ctx) })
	return func() {
		w.observed.measures(nil)
		cancel()
		wg.Wait()
	}
}

// measures notes what measures the silence of the present workers; nil is nothing.
func (o *observed) measures(s *silence) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.silence = s
}

// run looks after each step, and sooner if a stall may be found then.
func (s *stallWatch) run(ctx context.Context) {
	pause := s.meter.step
	for before := 0; await(ctx, time.After(pause)); {
		m, running := s.look()
		if m.broken != before {
			s.next = s.timeout
		}
		before, pause = m.broken, m.step
		switch left := s.next - m.silent; {
		case s.world.Seat.Rank > 0 || !running:
		case left <= 0:
			s.askAll(ctx, m)
		default:
			pause = min(pause, left)
		}
	}
}

// askAll asks all agents, and reports a stall if there is one that has not been reported. own is
// what this agent's meter shows.
func (s *stallWatch) askAll(ctx context.Context, own meter) {
	all, known := s.shortest(ctx)
	s.next = own.silent + s.timeout
	switch {
	case !known:
		s.next = own.silent + max(s.timeout/4, own.step)
	case all.Silent < s.timeout:
		s.next -= all.Silent
	case all.Broken == s.told: // the same stall
	case s.report(ctx, all.Silent):
		s.told = all.Broken
	}
}

// shortest is the answer of the job: the shortest silence of all agents' workers, and the sums of
// the numbers. It is not known if an agent has not answered, or if not all workers run.
func (s *stallWatch) shortest(ctx context.Context) (all silenceAnswer, known bool) {
	answers, missing, err := s.ask(ctx, rdzv.Question{Kind: silenceQuestion})
	if err != nil || len(missing) > 0 || len(answers) == 0 {
		return all, false
	}
	first, running := true, 0
	for _, a := range answers {
		var one silenceAnswer
		switch {
		case a.Seat.Spare:
			continue
		case a.Error != "" || json.Unmarshal(a.Value, &one) != nil || !one.Running || !one.Read:
			return all, false
		}
		running += a.Seat.Slots
		all.Writing, all.Broken = all.Writing+one.Writing, all.Broken+one.Broken
		if first || one.Silent < all.Silent {
			all.Silent, first = one.Silent, false
		}
	}
	return all, running == s.world.Size
}

func (s *stallWatch) ask(ctx context.Context, q rdzv.Question) ([]rdzv.Answer, []rdzv.Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, inspect.AnswerTimeout)
	defer cancel()
	return s.session.Ask(ctx, q)
}

// report reports a stall, and ends the attempt if that is what the user wants. It is false if the
// workers go on meanwhile.
func (s *stallWatch) report(ctx context.Context, silent time.Duration) bool {
	answers, missing, err := s.ask(ctx, rdzv.Question{
		Kind: inspect.StacksQuestion, Arg: inspect.FlightRecorder,
	})
	if err != nil {
		return false
	}
	s.sampleRAS(ctx)
	at := inspect.Observation{Answers: answers, Missing: missing}.Stacks(s.world.Job)
	if !s.awaitRecorders(ctx) {
		return false
	}
	s.number++
	e := Stalled{
		Attempt: s.world.Attempt, Number: s.number, Timeout: s.timeout, Stacks: at,
		Ends:  s.local.Config.StallAction != StallStacks,
		Stall: s.judge(at),
	}
	e.Stall.Silent = silent
	s.writeReport(ctx, &e)
	s.events.send(e)
	if e.Ends {
		s.write(func(ctx context.Context) error {
			return s.session.Stall(ctx, e.Stall, time.Since(s.began))
		})
	}
	return true
}

// recorderLimit is how long the flight recorders may take to write.
const recorderLimit = 10 * time.Second

// awaitRecorders waits until they have written, and tells whether the workers still are silent.
func (s *stallWatch) awaitRecorders(ctx context.Context) bool {
	for begin, pause := time.Now(), 500*time.Millisecond; ; {
		all, known := s.shortest(ctx)
		if !known || all.Silent < s.timeout {
			return false
		}
		if all.Writing == 0 || time.Since(begin) > recorderLimit || !await(ctx, time.After(pause)) {
			return ctx.Err() == nil
		}
	}
}

// judge says which rank is behind, as far as NCCL or the stacks tell it.
func (s *stallWatch) judge(at stacks.Report) rdzv.Stall {
	collectives, behind := s.collectives(at)
	stall := rdzv.Stall{Rank: rdzv.Unknown, Collectives: collectives}
	odd, why := at.Odd()
	switch {
	case len(behind) == 1:
		stall.Rank, stall.Host = behind[0], at.HostOf(behind[0])
	case len(behind) > 1: // which collectives names
	case odd != nil:
		stall.Rank, stall.Host, stall.Reason = odd.Rank, odd.Host, why
	default:
		stall.Reason = "which rank is behind is not known: " + why
	}
	return stall
}

// collectives is what NCCL says of the ranks, from this agent's workers or those of another one.
func (s *stallWatch) collectives(at stacks.Report) (text string, behind []int) {
	s.mu.Lock()
	report, known := s.ras, s.known
	s.mu.Unlock()
	if known {
		lag := report.Lag(s.world.Size)
		return "NCCL: " + lag.Text, lag.Behind
	}
	if at.Collectives != "" {
		return "NCCL: " + at.Collectives, at.Behind
	}
	return "NCCL's RAS service does not answer, so only output was watched", nil
}
