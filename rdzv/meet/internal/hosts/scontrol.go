package hosts

import "strings"

// A NodeAddr is a node of Slurm and the name or address by which Slurm reaches it.
type NodeAddr struct{ Name, Addr string }

// ParseScontrol parses the output of "scontrol show node", with or without the option -o. The
// address of a node without NodeAddr is its name.
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
