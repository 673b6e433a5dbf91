package node

import (
	"path"
	"strings"
)

// infiniBand are the ports of InfiniBand and RoCE adapters, with their rates.
func (f Files) infiniBand() Fact {
	const dir = "sys/class/infiniband"
	var ports, down []string
	for _, device := range f.list(dir) {
		for _, number := range f.list(path.Join(dir, device, "ports")) {
			port := path.Join(dir, device, "ports", number)
			_, state, _ := strings.Cut(f.text(port+"/state"), ": ")
			if state != "ACTIVE" {
				down = append(down, strings.ToLower(state))
				continue
			}
			rate, _, _ := strings.Cut(f.text(port+"/rate"), " (")
			ports = append(ports, rate+" "+f.text(port+"/link_layer"))
		}
	}
	return Fact{Name: "InfiniBand ports", Value: tally(append(ports, down...))}
}
