package meet

import "fmt"

// DifferentNodes reports an agent of this user on this host that runs the same command and waits
// for another number of nodes: the two were probably meant to be one job. It comes from
// Config.Others.
type DifferentNodes struct {
	PID   int    `json:"pid"`       // its process ID
	Nodes string `json:"nodes"`     // for how many nodes it waits: `3`, or `2:4` for 2 to 4
	Own   string `json:"own_nodes"` // for how many this agent waits
}

// String names the agent and what the user can do.
func (n DifferentNodes) String() string {
	return fmt.Sprintf("%s runs the same command and waits for %s nodes, this one for %s; "+
		"for one job give both the same Config.Nodes, and agents on one host a Config.NodeRank each",
		n.Agent(), n.Nodes, n.Own)
}

// Agent names the agent.
func (n DifferentNodes) Agent() string { return fmt.Sprintf("process %d on this host", n.PID) }

func (n DifferentNodes) describe() string {
	return fmt.Sprintf("%s, which runs the same command and waits for %s nodes, this one for %s",
		n.Agent(), n.Nodes, n.Own)
}

func (DifferentNodes) notice() {}
