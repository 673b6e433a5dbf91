package keys

import "strconv"

// Attempt are the keys of one attempt of a run of a job. Signals are those that all agents watch.
type Attempt struct {
	Run    Run
	Prefix string
}

// Attempt is one attempt of the run.
func (r Run) Attempt(n int) Attempt { return Attempt{r, r.Prefix + strconv.Itoa(n) + "/"} }

func (a Attempt) family(name string) Family { return Family(a.Prefix + name + "/") }
func (a Attempt) signal(name string) string { return a.Signals().Of(name) }

// Keys of agents.
func (a Attempt) Members() Family    { return a.family("member") }
func (a Attempt) Preparing() Family  { return a.family("preparing") }
func (a Attempt) Seats() Family      { return a.family("seat") }
func (a Attempt) Ready() Family      { return a.family("ready") }
func (a Attempt) Reached() Family    { return a.family("reached") }
func (a Attempt) Connecting() Family { return a.family("connecting") }
func (a Attempt) Progress() Family   { return a.family("progress") }
func (a Attempt) Outcomes() Family   { return a.family("outcome") }

// Answers are those of the agents to a question.
func (a Attempt) Answers(question string) Family { return a.family("answer/" + question) }

// Signals.
func (a Attempt) Signals() Family   { return a.family("signal") }
func (a Attempt) World() string     { return a.signal("world") }
func (a Attempt) Exports() string   { return a.signal("exports") }
func (a Attempt) Start() string     { return a.signal("start") }
func (a Attempt) Release() string   { return a.signal("release") }
func (a Attempt) Absent() string    { return a.signal("absent") }
func (a Attempt) InitQuery() string { return a.signal("look") }
func (a Attempt) Init() string      { return a.signal("init") }
func (a Attempt) Verdict() string   { return a.signal("verdict") }
func (a Attempt) Settled() string   { return a.signal("settled") }
func (a Attempt) Left() Family      { return a.family("signal/left") }
func (a Attempt) Questions() Family { return a.family("signal/ask") }

// Shares is a family of signals to processes.
func (a Attempt) Shares() Family { return a.family("signal/share") }

// Share is the key of a signal to processes that all agents share.
func (a Attempt) Share(signal int) string { return a.Shares().Of(strconv.Itoa(signal)) }
