// Package status makes a report on a running job from what its agents tell: one row per rank.
package status

import (
	"encoding/json"
	"slices"
	"time"

	"rdzv/rdzv"
)

// Report is what "rdzv status" tells of the jobs of one user that have agents on a host.
type Report struct {
	Jobs []Job `json:"jobs"`
	// Silent are the PIDs of agents that have not told which job is theirs.
	Silent []int `json:"not_answering"`
	Others []int `json:"-"` // the users of other agents, one for each
}

// Job is what is known of a job at one moment.
type Job struct {
	Job   string `json:"job"`
	State Phase  `json:"state"`
	// Seconds is how long the agent that was asked has been in this state.
	Seconds   float64 `json:"state_seconds"`
	Agents    int     `json:"agents"`
	Joined    int     `json:"joined"`               // how many agents have
	WorldSize int     `json:"world_size,omitempty"` // 0 before the world is agreed
	Nodes     int     `json:"nodes,omitempty"`
	// Ending is why the job is ending, or what an agent that has not joined is doing.
	Text string `json:"text,omitempty"`
	// Ranks are all ranks; without a world the agents that have joined, with rank -1.
	Ranks []Rank `json:"ranks"`
}

// Phase is what the agents of a job are doing.
type Phase string

const (
	Joining Phase = "joining" // they wait until all have joined
	Running Phase = "running" // their workers run
	Ending  Phase = "ending"  // the job has ended, and they stop their workers
)

// Rank is what is known of a worker.
type Rank struct {
	Rank     int    `json:"rank"`
	Host     string `json:"host"`
	PID      int    `json:"pid,omitempty"` // 0 unless it was started
	AgentPID int    `json:"agent_pid"`
	State    State  `json:"state"`
	// Seconds is since when: since its start, or its end.
	Seconds  float64 `json:"state_seconds,omitempty"`
	ExitCode *int    `json:"exit_code,omitempty"`
	Signal   string  `json:"signal,omitempty"` // that terminated it
	// Init tells whether it has reached init_process_group; nil if that is not known.
	Init *bool `json:"reached_init,omitempty"`
	// Output is how long ago it wrote something that its agent reads; nil if it has not.
	Output *float64 `json:"output_seconds,omitempty"`
	// CPU is how many cores it and its descendants used in the last second; nil if it has ended.
	CPU *float64 `json:"cpu,omitempty"`
}

// State is the state of a worker.
type State string

const (
	Waiting  State = "waiting"   // it has not been started
	Alive    State = "running"   // or sleeping
	Blocked  State = "blocked"   // waiting in the kernel, uninterruptibly (D)
	Stopped  State = "stopped"   // by SIGSTOP or a debugger
	Exited   State = "exited"    // or was terminated by a signal
	NoAnswer State = "no_answer" // its agent has not answered
)

// Agent is what one agent tells about itself.
type Agent struct {
	State   Phase   `json:"state"`
	Seconds float64 `json:"state_seconds"`
	Text    string  `json:"text,omitempty"`
	Ranks   []Rank  `json:"ranks,omitempty"`
}

// Add adds what the agents of the job have answered, and those that have not.
func (j *Job) Add(answers []rdzv.Answer, missing []rdzv.Peer) {
	j.Joined += len(answers) + len(missing)
	for _, a := range answers {
		var agent Agent
		if a.Error != "" || json.Unmarshal(a.Value, &agent) != nil {
			missing = append(missing, a.Peer)
			continue
		}
		j.Ranks = append(j.Ranks, agent.Ranks...)
	}
	for _, p := range missing {
		for i := range max(1, p.Seat.Slots) {
			r := Rank{Rank: p.Seat.Rank + i, Host: p.Host, AgentPID: p.PID, State: NoAnswer}
			if p.Seat.Slots == 0 {
				r.Rank = rdzv.Unknown
			}
			j.Ranks = append(j.Ranks, r)
		}
	}
	slices.SortStableFunc(j.Ranks, func(a, b Rank) int { return a.Rank - b.Rank })
	j.onlyAfterRank0()
}

// onlyAfterRank0 withdraws what is said about init_process_group if rank 0 has not reached it: what
// another rank is connected to is something else then.
func (j *Job) onlyAfterRank0() {
	if len(j.Ranks) > 0 && j.Ranks[0].Init != nil && !*j.Ranks[0].Init {
		for i := range j.Ranks {
			if j.Ranks[i].Init != nil {
				j.Ranks[i].Init = new(false)
			}
		}
	}
}

// Missing are the ranks that run and have not reached init_process_group although rank 0 has.
func (j Job) Missing() (missing []Rank) {
	if len(j.Ranks) == 0 || j.Ranks[0].Init == nil || !*j.Ranks[0].Init {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(j.Ranks), func(r Rank) bool {
		return r.Init == nil || *r.Init
	})
}

// Silent are the ranks whose agents have not answered.
func (j Job) Silent() []Rank {
	return slices.DeleteFunc(slices.Clone(j.Ranks), func(r Rank) bool { return r.State != NoAnswer })
}

// Duration is a number of seconds, for people.
func Duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}
