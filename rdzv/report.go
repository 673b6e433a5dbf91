package rdzv

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
)

// Fail reports that a worker of this agent failed. If there is no verdict yet, this
// failure is the verdict. It returns when the store has answered.
func (s *Session) Fail(ctx context.Context, w Worker) error {
	return s.verdicts.put(ctx, record.FailedVerdict(s.config.Self.ID, s.config.Self.Host, w))
}

// End reports that this agent received a signal that ends the job. shared says that its workers
// have received it too.
func (s *Session) End(ctx context.Context, signal int, shared bool) error {
	s.ending.Store(true)
	return s.verdicts.put(ctx, s.verdicts.signalled(signal, shared))
}

// ByCaller says that what End and Withdraw report from now on is no signal: the caller of this
// agent wants it.
func (s *Session) ByCaller() { s.verdicts.byCaller.Store(true) }

// Stop ends the job because its user wants it; by says who: "rdzv stop on node1". The workers are
// stopped as after SIGTERM.
func (s *Session) Stop(ctx context.Context, by string) error {
	v := s.verdicts.about(Stopped)
	v.Text = by
	s.ending.Store(true)
	return s.verdicts.put(ctx, v)
}

// ReportLoss reports the loss of something without which this agent's workers must not
// run, such as the launcher. text is a sentence. After a final loss no other attempt follows.
func (s *Session) ReportLoss(ctx context.Context, text string, final bool) error {
	v := s.verdicts.about(Lost)
	v.Text, v.Final = text, final
	return s.verdicts.put(ctx, v)
}

// Refuse ends the job because of problems that its agents have found together.
func (s *Session) Refuse(ctx context.Context, problems []NodeProblem) error {
	v := record.VerdictOf(Unready)
	v.Problems, v.MoreProblems = record.Cut(slices.Clone(problems))
	for i := range v.Problems {
		p := &v.Problems[i]
		p.Text, p.Hint = record.Clip(p.Text), record.Clip(p.Hint)
		p.Hosts, p.MoreHosts = record.Cut(p.Hosts)
	}
	return s.verdicts.put(ctx, v)
}

// StalledCode is the exit code of a job that has ended because it stalled.
const StalledCode = 119

// Stall ends the attempt because it makes no progress, unless it has ended already. took is how
// long its workers have run.
func (s *Session) Stall(ctx context.Context, stall Stall, took time.Duration) error {
	stall.Reason, stall.Collectives = record.Clip(stall.Reason), record.Clip(stall.Collectives)
	v := s.verdicts.about(Stalled)
	v.Stall, v.Code, v.RanFor = &stall, StalledCode, Seconds(took)
	return s.verdicts.put(ctx, v)
}

// Settle publishes how all workers of this agent ended. An agent that has started none passes none.
// If there is no verdict yet, a worker that failed or is missing ends the job. Details are for the
// agents that read them, see Config.ReadDetails.
func (s *Session) Settle(ctx context.Context, workers []Worker, details ...Detail) error {
	o := record.NewOutcome(s.config.Self.Host, workers)
	o.Details = record.ClippedDetails(details)
	o.Ending = s.ending.Load() && survivesLoss(s.config.Attempt, s.signals.World.Load())
	return s.outcomes.put(ctx, o)
}

// Progress publishes which workers of this agent have ended while others still run. The
// leader needs it to find stragglers among the workers of one agent.
func (s *Session) Progress(ctx context.Context, ended []Worker) error {
	return s.outcomes.progress(ctx, ended)
}

// Ask asks all agents that have joined, including this one, from Join to Leave, also after the job
// has ended. It returns when all have answered or after Question.Within, with the answers and with
// the agents that have not answered, both in the order of their ranks. If ctx ends it returns why.
//
// One question is asked at a time: while there is another one, Ask waits for up to 3 s, and then
// returns an error that says who has asked it. Together the answers have at most MaxAnswers bytes
// in the store, so that there is always room for how the job ends.
func (s *Session) Ask(ctx context.Context, q Question) (
	answers []Answer, missing []Peer, err error,
) {
	answers, missing, err = s.questions.Ask(ctx, q)
	if err != nil {
		err = fmt.Errorf("cannot ask the agents of job %q: %w", s.config.Job, err)
	}
	return answers, missing, err
}
