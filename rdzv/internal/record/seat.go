package record

// Seat is an agent's place in the world.
type Seat struct {
	// where its workers are, in their order
	Tasks     []SeatTask `json:"tasks,omitempty"`
	LocalSize int        `json:"local_world_size"` // number of workers on this node
	Node      int        `json:"node_rank"`        // rank of this node

	// this agent runs no workers, and waits for the loss of another one, or has joined too late
	// for this attempt and waits for the next one
	Spare bool `json:"spare,omitempty"`
}

// SeatTask is the place of the workers of a task, or of several tasks whose ranks and local ranks
// continue.
type SeatTask struct {
	Rank      int `json:"rank"`       // rank of the first worker; the others follow
	LocalRank int `json:"local_rank"` // local rank of the first worker
	Slots     int `json:"workers"`    // number of workers
}

// SpareSeat is the seat of an agent that waits for the loss of another one.
var SpareSeat = Seat{Node: Unknown, Spare: true}

// Add adds the place of the next task.
func (s *Seat) Add(t SeatTask) {
	if n := len(s.Tasks); n > 0 {
		last := &s.Tasks[n-1]
		if t.Rank == last.Rank+last.Slots && t.LocalRank == last.LocalRank+last.Slots {
			last.Slots += t.Slots
			return
		}
	}
	s.Tasks = append(s.Tasks, t)
}

// Workers returns the number of workers of the agent.
func (s Seat) Workers() (n int) {
	for _, t := range s.Tasks {
		n += t.Slots
	}
	return n
}

// RankOf returns the rank of the agent's i-th worker, Unknown if there is none.
func (s Seat) RankOf(i int) int {
	t, at := s.taskOf(i)
	return t.Rank + at
}

// LocalRankOf returns the local rank of the agent's i-th worker.
func (s Seat) LocalRankOf(i int) int {
	t, at := s.taskOf(i)
	return t.LocalRank + at
}

// taskOf returns the task of the agent's i-th worker, and which one of its workers that is.
func (s Seat) taskOf(i int) (t SeatTask, at int) {
	for _, t := range s.Tasks {
		if i < t.Slots {
			return t, i
		}
		i -= t.Slots
	}
	return SeatTask{Rank: Unknown, LocalRank: Unknown}, 0
}

// First returns the lowest rank of the agent's workers, Unknown if it has none.
func (s Seat) First() int {
	first := Unknown
	for i, t := range s.Tasks {
		if i == 0 || t.Rank < first {
			first = t.Rank
		}
	}
	return first
}

// Index returns which worker of the agent has a rank, -1 if none has.
func (s Seat) Index(rank int) int {
	before := 0
	for _, t := range s.Tasks {
		if t.Rank <= rank && rank < t.Rank+t.Slots {
			return before + rank - t.Rank
		}
		before += t.Slots
	}
	return -1
}

// Has tells whether a worker of the agent has a rank.
func (s Seat) Has(rank int) bool { return s.Index(rank) >= 0 }

// AllRanks returns the ranks of the agent's workers, in their order.
func (s Seat) AllRanks() (ranks []int) {
	for _, t := range s.Tasks {
		for i := range t.Slots {
			ranks = append(ranks, t.Rank+i)
		}
	}
	return ranks
}

// Ranks returns the ranks of the agent's workers for people, such as "0-7" or "0,2,...,14".
func (s Seat) Ranks() string { return Ranges(s.AllRanks()) }
