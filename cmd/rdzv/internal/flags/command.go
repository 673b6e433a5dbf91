package flags

import (
	"strings"
)

// Command is a subcommand: its help, the manual page and the completions are made from it.
type Command struct {
	Name      string
	Summary   string // in the overview, "" if it is not listed there
	Prose     string // the help, with the flags at "{flags}"
	Groups    []Group
	Operands  []string // the words that can follow it, other than flags
	Directory bool     // a directory follows it
	Program   bool     // a program with its arguments follows it
}

// Rows are all flags of the command.
func (c Command) Rows() (rows []Row) {
	for _, g := range c.Groups {
		rows = append(rows, g.Rows...)
	}
	return rows
}

// Help is the help of the command as it is printed.
func (c Command) Help() string {
	var flags strings.Builder
	for i, g := range c.Groups {
		if i > 0 && g.Title != "" {
			flags.WriteString("\n")
		}
		flags.WriteString(g.Help())
	}
	return strings.Replace(c.Prose, "{flags}\n", flags.String(), 1)
}

// Names are those of commands.
func Names(commands []Command) (names []string) {
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return names
}
