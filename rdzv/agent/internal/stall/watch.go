// Package stall finds out whether the workers of a job have stopped making progress.
//
// An attempt has stalled when for a time all of its workers ran, and none has written anything,
// reached init_process_group, ended, or launched a collective operation of which NCCL tells. Each
// agent measures the silence of its own workers. When those of rank 0's agent have been silent for
// that long, that agent asks the others: the shortest silence is that of the job. A job whose rank
// 0 writes pays for no question.
package stall

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/inspect"
	"rdzv/rdzv/agent/internal/wait"
	"rdzv/rdzv/stacks"
)

// Watch finds out whether the attempt has stalled. Only rank 0's agent asks the others.
type Watch struct {
	*Silence
	Timeout time.Duration
	Ask     func(context.Context, rdzv.Question) ([]rdzv.Answer, []rdzv.Peer, error)
	Report  func(context.Context, Report) // of a stall

	next   time.Duration // the silence of this agent's workers at which it asks again
	told   int           // the sum of broken when a stall was reported; -1 if none was
	number int           // of stalls of this attempt
	began  time.Time
}

// Report describes a stall to Watch.Report.
type Report struct {
	rdzv.Stall
	Number int // of the stall in the attempt; 1 is the first
	Stacks stacks.Report
	Ran    time.Duration // since the watch began
}

// Run watches until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { w.watchRAS(ctx) })
	w.run(ctx)
	wg.Wait()
}

// run looks after each step, and sooner if a stall may be found then.
func (w *Watch) run(ctx context.Context) {
	w.next, w.told, w.began = w.Timeout, -1, time.Now()
	pause := w.meter.step
	for before := 0; wait.For(ctx, time.After(pause)); {
		m, running := w.now()
		if m.broken != before {
			w.next = w.Timeout
		}
		before, pause = m.broken, m.step
		switch left := w.next - m.silent; {
		case !w.World.Seat.Has(0) || !running:
		case left <= 0:
			w.askAll(ctx, m)
		default:
			pause = min(pause, left)
		}
	}
}

// askAll asks all agents, and reports a stall if there is one that has not been reported. own is
// what this agent's meter shows.
func (w *Watch) askAll(ctx context.Context, own meter) {
	all, known := w.shortest(ctx)
	w.next = own.silent + w.Timeout
	switch {
	case !known:
		w.next = own.silent + max(w.Timeout/4, own.step)
	case all.Silent < w.Timeout:
		w.next -= all.Silent
	case all.Broken == w.told: // the same stall
	case w.report(ctx, all):
		w.told = all.Broken
	}
}

// shortest is the answer of the job: the shortest silence of all agents' workers, and how often it
// has been broken in all. It is not known if an agent has not answered, or if not all workers run.
func (w *Watch) shortest(ctx context.Context) (all Answer, known bool) {
	answers, missing, err := w.ask(ctx, rdzv.Question{Kind: Question})
	if err != nil || len(missing) > 0 || len(answers) == 0 {
		return all, false
	}
	first, running := true, 0
	for _, a := range answers {
		var one Answer
		switch {
		case a.Seat.Spare:
			continue
		case a.Error != "" || json.Unmarshal(a.Value, &one) != nil || !one.Running || !one.Read:
			return all, false
		}
		if t := one.Traceback; t != nil && (all.Traceback == nil || t.Seconds > all.Traceback.Seconds) {
			all.Traceback, all.Rank, all.Host = t, one.Rank, a.Host
		}
		running += a.Seat.Workers()
		all.Broken += one.Broken
		if first || one.Silent < all.Silent {
			all.Silent, first = one.Silent, false
		}
	}
	return all, running == w.World.Size
}

func (w *Watch) ask(ctx context.Context, q rdzv.Question) ([]rdzv.Answer, []rdzv.Peer, error) {
	q.Within = inspect.AnswerTimeout
	return w.Ask(ctx, q)
}

// report reports a stall. It is false if the workers go on meanwhile.
func (w *Watch) report(ctx context.Context, all Answer) bool {
	answers, missing, err := w.ask(ctx, rdzv.Question{Kind: inspect.StacksQuestion})
	if err != nil {
		return false
	}
	w.sampleRAS(ctx)
	at := inspect.Observation{Answers: answers, Missing: missing}.Stacks(w.World.Job)
	if still, known := w.shortest(ctx); !known || still.Silent < w.Timeout || ctx.Err() != nil {
		return false
	}
	w.number++
	stall := w.judge(at, all)
	stall.Silent = rdzv.Seconds(all.Silent)
	w.Report(ctx, Report{Stall: stall, Number: w.number, Stacks: at, Ran: time.Since(w.began)})
	return true
}

// judge says which rank is behind, as far as NCCL or the stacks tell it. A rank that has printed a
// traceback shortly before the silence, or in it, is suspected first.
func (w *Watch) judge(at stacks.Report, all Answer) rdzv.Stall {
	collectives, behind := w.collectives(at)
	stall := rdzv.Stall{Rank: rdzv.Unknown, Collectives: collectives}
	odd, why := at.Odd()
	switch traceback := all.Traceback; {
	case traceback != nil && traceback.Seconds < (all.Silent+w.Timeout).Seconds():
		stall.Rank, stall.Host, stall.Traceback = all.Rank, all.Host, traceback.Exception
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

// collectives compares the ranks by the counts of NCCL, and returns the ranks that are behind. The
// answer to this agent is preferred to one that another agent got.
func (w *Watch) collectives(at stacks.Report) (text string, behind []int) {
	w.mu.Lock()
	report, known := w.ras, w.known
	w.mu.Unlock()
	if known {
		lag := report.Lag(w.World.Size)
		return "NCCL: " + lag.Text, lag.Behind
	}
	if at.Collectives != "" {
		return "NCCL: " + at.Collectives, at.Behind
	}
	if at.NCCL != "" {
		return "NCCL before 2.28.7 has told no counts, so only output was watched; its report is with " +
			"the stacks", nil
	}
	return "NCCL's RAS service does not answer, so only output was watched", nil
}
