package keys

import "strconv"

// Attempt are the keys of one attempt of a run of a job. Signals are those that all agents watch.
type Attempt struct {
	Run    Run
	Prefix string
}

// Attempt is one attempt of the run.
func (r Run) Attempt(n int) Attempt { return Attempt{r, r.Prefix + strconv.Itoa(n) + "/"} }

// The names of the keys of agents, and of signals below "signal/".
const (
	Member   = "member"
	Seat     = "seat"
	Progress = "progress"
	Outcome  = "outcome"
	Signal   = "signal"

	World    = "world"
	Exports  = "exports"
	Release  = "release"
	Verdict  = "verdict"
	Settled  = "settled"
	Left     = "left"
	Question = "ask"
)

func (a Attempt) family(name string) Family { return Family(a.Prefix + name + "/") }
func (a Attempt) signal(name string) string { return a.Signals().Of(name) }

// End follows all keys of the attempt.
func (a Attempt) End() string { return Family(a.Prefix).End() }

// Keys of agents.
func (a Attempt) Members() Family  { return a.family(Member) }
func (a Attempt) Seats() Family    { return a.family(Seat) }
func (a Attempt) Progress() Family { return a.family(Progress) }
func (a Attempt) Outcomes() Family { return a.family(Outcome) }

// Answers are those of the agents to a question.
func (a Attempt) Answers(question string) Family { return a.family("answer/" + question) }

// Signals.
func (a Attempt) Signals() Family { return a.family(Signal) }
func (a Attempt) World() string   { return a.signal(World) }
func (a Attempt) Exports() string { return a.signal(Exports) }
func (a Attempt) Release() string { return a.signal(Release) }
func (a Attempt) Verdict() string { return a.signal(Verdict) }
func (a Attempt) Settled() string { return a.signal(Settled) }
func (a Attempt) Left() Family    { return a.family(Signal + "/" + Left) }

// Question is the one that agents answer at present.
func (a Attempt) Question() string { return a.signal(Question) }
