package job

import (
	"fmt"
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

// A roster names the nodes of the missing ranks only if it is certain that they are there.
func TestRosterOfNodes(t *testing.T) {
	nodes := []string{"node1", "node2.cluster"}
	on := func(hosts ...string) (members []record.Member) {
		for rank, host := range hosts {
			m := joinedAgent(rank)
			m.Tasks, m.Host = ranked(rank), host
			members = append(members, m)
		}
		return members
	}
	for _, test := range []struct {
		members []record.Member
		agents  int
		nodes   []string
		want    string
	}{
		{on("node1"), 2, nodes, "[node2.cluster]"},
		{on("node2"), 2, nodes, "[node1]"},
		{on("node1", "node1"), 4, nodes, "[node2.cluster]"},
		{on("node1"), 4, nodes, "[]"}, // another rank of node1 is missing too
		{on("node1", "node2"), 4, nodes, "[]"},
		{on("node1"), 2, nil, "[]"},
		{on("one"), 2, nodes, "[]"}, // the launcher uses other names
	} {
		if got := fmt.Sprint(RosterOf(test.members, test.agents,
			test.nodes).Absent); got != test.want {
			t.Errorf("%d of %d agents: absent nodes %s, want %s", len(test.members), test.agents,
				got, test.want)
		}
	}
}

// The time for a roster grows linearly with the number of nodes: the leader makes one whenever
// agents wait, and with 12,288 nodes comparing each with each takes it seconds.
func TestRosterOfManyNodes(t *testing.T) {
	const size, rosters, limit = 12_288, 10, 5 * time.Second
	var nodes []string
	var members []record.Member
	for rank := range size {
		m := joinedAgent(rank)
		m.Tasks, m.Host = ranked(rank), fmt.Sprintf("node%d", rank)
		nodes, members = append(nodes, m.Host+".cluster"), append(members, m)
	}
	begin := time.Now()
	for range rosters {
		r := RosterOf(members[:size-1], size, nodes)
		if got := fmt.Sprint(r.Absent); got != "[node12287.cluster]" {
			t.Fatalf("absent nodes %s, want the last one", got)
		}
	}
	if took := time.Since(begin); took > limit {
		t.Errorf("%d rosters of %d nodes took %v, want at most %v", rosters, size, took, limit)
	}
}

// Without a launcher the node ranks that users gave tell which are missing, if all gave one.
func TestRosterOfNodeRanks(t *testing.T) {
	for _, c := range []struct {
		nodeRanks []int
		want      string
	}{
		{[]int{0, 2}, "[1 3]"}, {[]int{3}, "[0 1 2]"}, {[]int{0, record.Unknown}, "[]"}, {[]int{0, 0}, "[]"},
		{nil, "[]"},
	} {
		var members []record.Member
		for i, nodeRank := range c.nodeRanks {
			m := joinedAgent(i)
			m.NodeRank = nodeRank
			members = append(members, m)
		}
		if got := RosterOf(members, 4, nil); fmt.Sprint(got.MissingNodes) != c.want {
			t.Errorf("node ranks %d of 4: %d are missing, want %s", c.nodeRanks, got.MissingNodes, c.want)
		}
	}
}

func TestRoster(t *testing.T) {
	hosts := func(n int) (hosts []string) {
		for i := range n {
			hosts = append(hosts, fmt.Sprint("node", i))
		}
		return hosts
	}
	for want, r := range map[string]record.Roster{
		"0 of 4 agents joined": {Tasks: 4},
		"4 of 4 agents joined": {Joined: 4, Tasks: 4, Hosts: hosts(4)},
		"3 of 4 tasks joined; rank 2 has not started rdzv or cannot connect " + seeAbove: {
			Joined: 3, Tasks: 4, Launched: true, Missing: []int{2}, Hosts: hosts(1),
		},
		"1 of 2 tasks joined; rank 1 has not started rdzv on node2 or cannot connect " +
			"" + seeAbove: {
			Joined: 1, Tasks: 2, Launched: true, Missing: []int{1}, Hosts: hosts(1), Absent: []string{"node2"},
		},
		"1 of 2 tasks joined; rank 1 has not started rdzv or cannot connect (see its output)": {
			Joined: 1, Tasks: 2, Launched: true, Missing: []int{1}, Hosts: hosts(1), Unattended: true,
		},
		"2 of 4 tasks joined; ranks 1, 3 have not started rdzv or cannot connect " +
			"(see their output)": {
			Joined: 2, Tasks: 4, Launched: true, Missing: []int{1, 3}, Hosts: hosts(1), Unattended: true,
		},
		"1 of 2 tasks joined; rank 1 is missing; refused because of a different token: node2": {
			Joined: 1, Tasks: 2, Launched: true, Missing: []int{1}, Hosts: hosts(1), Refused: []string{"node2"},
		},
		"1 of 2 agents joined (from node0); refused because of a different token: node2": {
			Joined: 1, Tasks: 2, Hosts: hosts(1), Refused: []string{"node2"},
		},
		"2 of 3 agents joined (from node0, node1); node rank 2 is missing": {
			Joined: 2, Tasks: 3, MissingNodes: []int{2}, Hosts: hosts(2),
		},
		"1 of 3 agents joined (from node0); node ranks 0, 2 are missing; refused because of a " +
			"different token: node2": {
			Joined: 1, Tasks: 3, MissingNodes: []int{0, 2}, Hosts: hosts(1), Refused: []string{"node2"},
		},
		"1 of 2 agents joined (from node0)":        {Joined: 1, Tasks: 2, Hosts: hosts(1)},
		"2 of 3 agents joined (from node0, node1)": {Joined: 2, Tasks: 3, Hosts: hosts(2)},
		"10 of 12 tasks joined; ranks 1, 7 have not started rdzv or cannot connect " + seeAbove: {
			Joined: 10, Tasks: 12, Launched: true, Missing: []int{1, 7},
		},
		"10 of 20 agents joined (from node0, node1, node2, node3, node4, node5, node6, node7 and " +
			"2 more)": {
			Joined: 10, Tasks: 20, Hosts: hosts(8), MoreHosts: 2,
		},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// ranked is a task of a launcher that runs one worker.
func ranked(rank int) []record.Task {
	return []record.Task{{Rank: rank, LocalRank: record.Unknown, Slots: 1}}
}

const seeAbove = "(see the launcher's messages above)"

// joinedAgent is the i-th agent, on a node of its own.
func joinedAgent(i int) record.Member {
	return record.Member{
		ID: fmt.Sprint("agent-", i), Host: fmt.Sprint("node", i), PID: 1000 + i,
		Tasks: record.Unplaced(1), LocalSize: record.Unknown, NodeRank: record.Unknown,
	}
}
