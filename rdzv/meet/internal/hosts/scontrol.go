package hosts

import "strings"

// A NodeAddr is a node of Slurm, and the name or address that Slurm reaches it by.
type NodeAddr struct{ Name, Addr string }

// ParseScontrol reads the output of "scontrol show node", one node a line or several lines a node.
func ParseScontrol(text string) []NodeAddr {
	var list []NodeAddr
	for word := range strings.FieldsSeq(text) {
		if name, ok := strings.CutPrefix(word, "NodeName="); ok {
			list = append(list, NodeAddr{Name: name, Addr: name})
		}
		if addr, ok := strings.CutPrefix(word, "NodeAddr="); ok && len(list) > 0 {
			list[len(list)-1].Addr = addr
		}
	}
	return list
}
