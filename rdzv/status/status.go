// Package status makes a report on a running job from what its agents answer: one row per rank.
package status

import (
	"cmp"
	"encoding/json"
	"slices"

	"rdzv/rdzv"
)

// Report is on the jobs of one user that have agents on one host.
type Report struct {
	Jobs []Job `json:"jobs"`
	// Silent are the PIDs of agents that have not told which job is theirs.
	Silent []int `json:"silent_agents,omitempty"`
	// Names are those of all jobs that have not ended, also if the report is on one of them.
	Names  []string `json:"-"`
	Wanted []string `json:"-"` // those of Names that were asked for
	Others []int    `json:"-"` // the users of other agents, one for each
}

// Add adds a job, or agents of one that have not joined to others of it that have not.
func (r *Report) Add(j Job) {
	if n := len(r.Jobs); n > 0 && j.Joined == 0 {
		last := &r.Jobs[n-1]
		sameUser := last.UID == nil || *last.UID == *j.UID
		sameJob := last.Job == j.Job && last.Name == j.Name && sameUser
		if sameJob && last.Joined == 0 && last.State == j.State {
			last.Waiting = append(last.Waiting, j.Waiting...)
			last.Present += j.Present
			return
		}
	}
	r.Jobs = append(r.Jobs, j)
}

// Job is the report on one job, which [Of] makes from the answers of its agents.
type Job struct {
	Job       string  `json:"job"`
	Name      string  `json:"name"`            // how its user calls it, and the commands show it
	UID       *int    `json:"uid,omitempty"`   // its user; nil if it is the one who asks
	State     Phase   `json:"state,omitempty"` // "" if nothing is known
	Seconds   float64 `json:"state_seconds"`   // since when
	Ending    string  `json:"ending,omitempty"`
	Tasks     int     `json:"tasks"`                // of the job; see rdzv.Roster
	Launched  bool    `json:"launched,omitempty"`   // there is one
	Joined    int     `json:"joined"`               // how many tasks have
	Present   int     `json:"present,omitempty"`    // how many of them wait, joined or not
	WorldSize int     `json:"world_size,omitempty"` // 0 before the world is agreed
	Nodes     int     `json:"nodes,omitempty"`
	Attempt   int     `json:"attempt"`      // 0 is the first
	Restarts  int     `json:"max_restarts"` // how many attempts there may be after it
	Ranks     []Rank  `json:"ranks"`        // in order; none before the world is agreed
	// Waiting are the agents that wait for others to join.
	Waiting []Peer `json:"waiting,omitempty"`
	// Spares are the agents that wait for the loss of another one.
	Spares []Peer `json:"spares,omitempty"`
	// LogDir is where the output of the ranks of the present attempt is kept; "" if it is not.
	LogDir string `json:"log_dir,omitempty"`
	// Collectives compares the ranks by the counts of NCCL: "rank 5 is at all_reduce 6649, the other
	// 31 at 6650"; "" if there are none.
	Collectives string `json:"nccl,omitempty"`
	// Alone is why only the agent that was asked has answered; "" if the others were asked.
	Alone string `json:"alone,omitempty"`
	Text  string `json:"error,omitempty"` // why nothing is known
}

// Phase is the state of a job, or of one agent. A job is Ending if one of its agents is.
type Phase string

const (
	Joining Phase = "joining" // they wait until all have joined
	Running Phase = "running" // their workers run
	Ending  Phase = "ending"  // the job or an attempt has ended, and they stop their workers
	// Restarting: the workers of an attempt have ended, and those of the next one do not run yet.
	Restarting Phase = "restarting"
	Spare      Phase = "spare" // it waits for the loss of another agent, of a job that runs
)

// Peer is an agent.
type Peer struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

// Rank describes one worker, as its agent sees it. [Of] adds Collectives, and the ranks of agents
// that have not answered.
type Rank struct {
	Rank     int     `json:"rank"`
	Host     string  `json:"host"`          // "" if it is not known
	PID      int     `json:"pid,omitempty"` // 0 if it was not started, or is not known
	AgentPID int     `json:"agent_pid"`     // 0 if it is not known
	State    State   `json:"state"`
	Seconds  float64 `json:"state_seconds,omitempty"` // since its start, or its end
	ExitCode *int    `json:"exit_code,omitempty"`     // nil unless it has exited
	// the signal that terminated it
	Signal rdzv.Signal `json:"signal,omitempty"`
	// Init tells whether it has reached init_process_group; nil if that is not known.
	Init *bool `json:"reached_init,omitempty"`
	// NotListening says that it is rank 0, has loaded torch at least 30 s ago, and does not listen on
	// MASTER_PORT, so that no rank can reach init_process_group.
	NotListening bool `json:"not_listening,omitempty"`
	// Output is how long ago it wrote something that its agent reads; nil if it has written nothing
	// of that.
	Output *float64 `json:"output_seconds,omitempty"`
	// LastLine is the last line of that, without blank ones; "" if none is known.
	LastLine string `json:"last_line,omitempty"`
	// AllOutput says that its agent reads its stdout and stderr, so that no Output means no output.
	AllOutput bool `json:"all_output,omitempty"`
	// Traceback is the last one that it has printed and gone on after; nil if none is known.
	Traceback *Traceback `json:"traceback,omitempty"`
	// CPU is how many cores it and its descendants have used in the last second; nil if it does not
	// run.
	CPU *float64 `json:"cpu,omitempty"`
	// GPU is how much its GPU is used, also by others; nil if that is not known.
	GPU *GPU `json:"gpu,omitempty"`
	// Collectives is how many collective operations of NCCL it has launched; nil if that is not known.
	Collectives *int64 `json:"collectives,omitempty"`
}

// GPU is how much a GPU is used.
type GPU struct {
	Use        float64 `json:"use"` // 1 is all the time
	MemoryUsed int64   `json:"memory_used_bytes"`
	Memory     int64   `json:"memory_bytes"`
}

// Traceback is one of Python that a worker has printed, and has not ended after. The program may
// have handled the exception.
type Traceback struct {
	Seconds float64 `json:"seconds"` // how long ago
	// Exception is the line that names it: "ValueError: no such file".
	Exception string `json:"exception"`
}

// State is the state of a worker.
type State string

const (
	Waiting  State = "waiting"   // it has not been started
	Alive    State = "running"   // or sleeping
	Blocked  State = "blocked"   // in the kernel, uninterruptibly (D), or a descendant is
	Stopped  State = "stopped"   // by a signal or a debugger
	Exited   State = "exited"    // or was terminated by a signal
	NoAnswer State = "no_answer" // its agent has not answered
)

// Agent is the JSON answer of one agent. [Of] makes a Job of all answers.
type Agent struct {
	State     Phase   `json:"state"`
	Seconds   float64 `json:"state_seconds"`
	Ending    string  `json:"ending,omitempty"`
	Joined    bool    `json:"joined"`
	Tasks     int     `json:"tasks"` // of the job
	Launched  bool    `json:"launched,omitempty"`
	WorldSize int     `json:"world_size,omitempty"`
	Nodes     int     `json:"nodes,omitempty"`
	Ranks     []Rank  `json:"ranks,omitempty"`

	Attempt     int `json:"attempt,omitempty"`
	MaxRestarts int `json:"max_restarts,omitempty"`

	LogDir string `json:"log_dir,omitempty"` // see Job

	Collectives *Collectives `json:"nccl,omitempty"` // nil if it does not know
}

// Collectives compares the ranks of a job by the collective operations that NCCL counts.
type Collectives struct {
	Text     string  `json:"text"`               // see Job
	Launched []int64 `json:"launched,omitempty"` // by each rank, -1 if that is not known
}

// Fit leaves out the counts of the ranks if the JSON of a would have more than limit bytes: they
// are those of all ranks of the job.
func (a *Agent) Fit(limit int) {
	if text, _ := json.Marshal(a); len(text) > limit && a.Collectives != nil {
		a.Collectives = &Collectives{Text: a.Collectives.Text}
	}
}

// Of is the report on a job whose agents have answered this, or not at all. alone is why only one
// agent was asked; "" if all were.
func Of(job string, answers []rdzv.Answer, missing []rdzv.Peer, alone string) Job {
	j := Job{Job: job, Ranks: []Rank{}, Alone: alone}
	for _, a := range answers {
		var agent Agent
		j.Text = cmp.Or(j.Text, a.Error)
		if a.Error != "" || json.Unmarshal(a.Value, &agent) != nil {
			missing = append(missing, a.Peer)
			continue
		}
		j.add(a.Peer, agent)
	}
	if j.State != "" {
		j.Text = ""
	}
	for _, p := range missing {
		j.Joined += p.Tasks
		for i := range p.Seat.Workers() {
			j.Ranks = append(j.Ranks, Rank{
				Rank: p.Seat.RankOf(i), Host: p.Host, AgentPID: p.PID, State: NoAnswer,
			})
		}
	}
	unknown := func(p rdzv.Peer) bool { return p.Host == "" }
	if alone != "" || slices.ContainsFunc(missing, unknown) {
		j.addUnknown()
	}
	slices.SortFunc(j.Ranks, func(a, b Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	j.withdrawInit()
	j.setCollectives(answers)
	return j
}

// addUnknown adds the ranks of which not even the agent is known.
func (j *Job) addUnknown() {
	known := map[int]bool{}
	for _, r := range j.Ranks {
		known[r.Rank] = true
	}
	for rank := range j.WorldSize {
		if !known[rank] {
			j.Ranks = append(j.Ranks, Rank{Rank: rank, State: NoAnswer})
		}
	}
}

// setCollectives takes what the first agent that knows it has been told by NCCL.
func (j *Job) setCollectives(answers []rdzv.Answer) {
	for _, a := range answers {
		var agent Agent
		if json.Unmarshal(a.Value, &agent) != nil || agent.Collectives == nil || j.Collectives != "" {
			continue
		}
		launched := agent.Collectives.Launched
		j.Collectives = agent.Collectives.Text
		for i, r := range j.Ranks {
			if r.Rank < len(launched) && launched[r.Rank] >= 0 {
				j.Ranks[i].Collectives = &launched[r.Rank]
			}
		}
	}
}

func (j *Job) add(p rdzv.Peer, a Agent) {
	if a.Joined {
		j.Joined += p.Tasks
	}
	if a.State == Joining {
		j.Waiting = append(j.Waiting, Peer{p.Host, p.PID})
		j.Present += max(1, p.Tasks)
	}
	if a.State == Spare {
		j.Spares = append(j.Spares, Peer{p.Host, p.PID})
		a.State = Running
	}
	if j.State == "" || a.State == Ending && j.State != Ending { // some learn of the end later
		j.State, j.Seconds, j.Ending = a.State, a.Seconds, a.Ending
	}
	j.Tasks, j.Launched = a.Tasks, a.Launched
	j.WorldSize, j.Nodes = max(j.WorldSize, a.WorldSize), max(j.Nodes, a.Nodes)
	j.Attempt, j.Restarts = max(j.Attempt, a.Attempt), max(j.Restarts, a.MaxRestarts)
	j.Ranks = append(j.Ranks, a.Ranks...)
	j.LogDir = cmp.Or(j.LogDir, a.LogDir)
}

// withdrawInit withdraws that ranks have reached init_process_group if rank 0 has not: what they
// are connected to is something else then.
func (j *Job) withdrawInit() {
	if len(j.Ranks) == 0 || j.Ranks[0].Init == nil || *j.Ranks[0].Init {
		return
	}
	for i := range j.Ranks {
		if j.Ranks[i].Init != nil {
			j.Ranks[i].Init = new(false)
		}
	}
}

// Traced are the ranks that run and have printed a traceback, the earliest one first.
func (j Job) Traced() []Rank {
	list := slices.DeleteFunc(slices.Clone(j.Ranks), func(r Rank) bool {
		return r.Traceback == nil || r.ExitCode != nil
	})
	slices.SortStableFunc(list, func(a, b Rank) int {
		return cmp.Compare(b.Traceback.Seconds, a.Traceback.Seconds)
	})
	return list
}

// NotReached are the ranks that run and have not reached init_process_group although rank 0 has.
func (j Job) NotReached() []Rank {
	if len(j.Ranks) == 0 || j.Ranks[0].Init == nil || !*j.Ranks[0].Init {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(j.Ranks), func(r Rank) bool {
		return r.Init == nil || *r.Init
	})
}

// Silence is for how many seconds no rank has written anything, if all run and that is known;
// otherwise 0.
func (j Job) Silence() float64 {
	least := j.Seconds
	for _, r := range j.Ranks {
		switch {
		case r.State != Alive || r.Output == nil && !r.AllOutput:
			return 0
		case r.Output == nil:
			least = min(least, r.Seconds)
		default:
			least = min(least, *r.Output)
		}
	}
	if len(j.Ranks) == 0 {
		return 0
	}
	return least
}
