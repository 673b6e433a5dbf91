package record

// Task is a process of the launcher: its rank and its local rank, or Unknown, and the number of
// workers that it runs. Without a launcher each agent is one task.
type Task struct {
	Rank      int `json:"rank"`
	LocalRank int `json:"local_rank"`
	Slots     int `json:"slots"`
}

// Unplaced is the task of an agent without a launcher that runs so many workers.
func Unplaced(slots int) []Task {
	return []Task{{Rank: Unknown, LocalRank: Unknown, Slots: slots}}
}

// FirstTask returns the task with the lowest rank. A member that could not be read has none, which
// is Unknown.
func (m Member) FirstTask() Task {
	first := Task{Rank: Unknown, LocalRank: Unknown}
	for i, t := range m.Tasks {
		if i == 0 || t.Rank < first.Rank {
			first = t
		}
	}
	return first
}

// Launched tells whether the agent's tasks are those of a launcher.
func (m Member) Launched() bool { return m.FirstTask().Rank != Unknown }

// TaskRanks returns the launcher's ranks for people, such as "0-7"; "" without a launcher.
func (m Member) TaskRanks() string {
	if !m.Launched() {
		return ""
	}
	ranks := make([]int, len(m.Tasks))
	for i, t := range m.Tasks {
		ranks[i] = t.Rank
	}
	return Ranges(ranks)
}

// Workers returns the number of workers of the agent.
func (m Member) Workers() (n int) {
	for _, t := range m.Tasks {
		n += t.Slots
	}
	return n
}

// TasksOf returns the number of tasks of members.
func TasksOf(members []Member) (n int) {
	for _, m := range members {
		n += len(m.Tasks)
	}
	return n
}
