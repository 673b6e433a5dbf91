package announce

import (
	"slices"
	"strings"

	"rdzv/internal/shell"
)

// A command is how this process was started.
type command struct {
	name           string // exec or check
	flags, program []string
}

// elsewhere is the command for another node, and whether it needs a --node-rank of its own there.
func (c command) elsewhere() (line string, ranked bool) {
	flags := slices.Clone(c.flags)
	for i, word := range flags {
		switch name, _, joined := strings.Cut(strings.ReplaceAll(word, "_", "-"), "="); {
		case name != "--node-rank":
		case joined:
			flags[i], ranked = "--node-rank=N", true
		case i+1 < len(flags):
			flags[i+1], ranked = "N", true
		}
	}
	return shell.Line(slices.Concat([]string{"rdzv", c.name}, flags, c.program)...), ranked
}
