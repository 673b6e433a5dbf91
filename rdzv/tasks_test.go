package rdzv

import (
	"fmt"
	"strings"
	"testing"
)

// Agents with several tasks of a launcher, and one with a task that came late, form one world. The
// loss of an agent is that of all its ranks.
func TestAgentsWithManyTasks(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 5})
		tasksOf := func(i int, node string, size int, ranks ...int) Member {
			m := member(i)
			m.Host, m.Node, m.LocalSize, m.Tasks = node, node, size, nil
			for local, rank := range ranks {
				m.Tasks = append(m.Tasks, Task{Rank: rank, LocalRank: local, Slots: 1})
			}
			return m
		}
		first, other := tasksOf(0, "a", 3, 0, 2), tasksOf(1, "b", 2, 1, 3)
		late := tasksOf(2, "a", 3, 4)
		late.Tasks[0].LocalRank = 2
		first.Hosting = true
		var sessions []*Session
		for _, m := range []Member{first, other, late} {
			sessions = append(sessions, j.join(m))
		}
		var got []string
		for _, w := range j.worlds(sessions) {
			got = append(got, fmt.Sprintf("%d of %d on node %d of %d", w.Seat.AllRanks(), w.Size, w.Seat.Node, w.Nodes))
		}
		const want = "[0 2] of 5 on node 0 of 2, [1 3] of 5 on node 1 of 2, [4] of 5 on node 0 of 2"
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("worlds: %s, want %s", got, want)
		}
		j.kill("agent-1")
		v, ok := j.ended(sessions[0]).(*Verdict)
		if !ok || v.Kind != Lost || !strings.HasPrefix(v.Error(), "lost the agent of ranks 1,3 (pid 1001 on b): ") {
			t.Errorf("the job ended with %v, want the loss of ranks 1 and 3", v)
		}
		j.settle(sessions[0])
		j.settle(sessions[2])
		each([]*Session{sessions[0], sessions[2]}, func(_ int, s *Session) { j.leave(s) })
	})
}
