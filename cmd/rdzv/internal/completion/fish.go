package completion

import (
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
)

// fishProgram is the completion except the commands and flags.
const fishProgram = `# fish completion for rdzv
complete -c rdzv -f
complete -c rdzv -n 'contains -- -- (commandline -opc)' -F -a '(__fish_complete_command)'
`

func fishQuoted(text string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text)
}

// Fish is the completion for fish.
func Fish(commands []flags.Command) string {
	var b strings.Builder
	b.WriteString(fishProgram)
	for _, c := range commands {
		fmt.Fprintf(&b, "complete -c rdzv -n __fish_use_subcommand -a %s -d '%s'\n",
			c.Name, fishQuoted(c.Summary))
		within := fmt.Sprintf("complete -c rdzv -n '__fish_seen_subcommand_from %s'", c.Name)
		for _, r := range c.Rows() {
			fmt.Fprintf(&b, "%s%s -d '%s'\n", within, fishFlag(r), fishQuoted(r.Text))
		}
		switch {
		case c.Program: // which may begin without --
			fmt.Fprintf(&b, "%s -F -a '(__fish_complete_command)'\n", within)
		case c.Directory:
			fmt.Fprintf(&b, "%s -a '(__fish_complete_directories)'\n", within)
		case c.Operands != nil:
			fmt.Fprintf(&b, "%s -a '%s'\n", within, strings.Join(c.Operands, " "))
		}
	}
	return b.String()
}

// fishFlag is a flag as arguments of complete.
func fishFlag(r flags.Row) string {
	flag := " -l " + r.Name()
	if r.Short() != "" {
		flag = " -s " + r.Short() + flag
	}
	switch {
	case r.Argument() == "":
		return flag
	case r.TakesFile():
		return flag + " -r -F"
	case r.TakesDirectory():
		return flag + " -x -a '(__fish_complete_directories)'"
	default:
		return fmt.Sprintf("%s -x -a '%s'", flag, strings.Join(r.Choices(), " "))
	}
}
