package main

import (
	"fmt"
	"strings"
)

// fishProgram is the completion except the commands and flags.
const fishProgram = `# fish completion for rdzv
complete -c rdzv -f
complete -c rdzv -n 'contains -- -- (commandline -opc)' -F -a '(__fish_complete_command)'
`

func fishQuoted(text string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text)
}

// fishCompletion is the completion for fish.
func fishCompletion(commands []command) string {
	var b strings.Builder
	b.WriteString(fishProgram)
	for _, c := range commands {
		fmt.Fprintf(&b, "complete -c rdzv -n __fish_use_subcommand -a %s -d '%s'\n",
			c.name, fishQuoted(c.summary))
		within := fmt.Sprintf("complete -c rdzv -n '__fish_seen_subcommand_from %s'", c.name)
		for _, r := range c.rows() {
			fmt.Fprintf(&b, "%s%s -d '%s'\n", within, fishFlag(r), fishQuoted(r.text))
		}
		switch {
		case c.takesDirectory():
			fmt.Fprintf(&b, "%s -a '(__fish_complete_directories)'\n", within)
		case c.operands() != nil:
			fmt.Fprintf(&b, "%s -a '%s'\n", within, strings.Join(c.operands(), " "))
		}
	}
	return b.String()
}

// fishFlag is a flag as arguments of complete.
func fishFlag(r flagRow) string {
	flag := " -l " + r.name()
	if r.short() != "" {
		flag = " -s " + r.short() + flag
	}
	switch {
	case r.argument() == "":
		return flag
	case r.takesFile():
		return flag + " -r -F"
	case r.takesDirectory():
		return flag + " -x -a '(__fish_complete_directories)'"
	default:
		return fmt.Sprintf("%s -x -a '%s'", flag, strings.Join(r.choices(), " "))
	}
}
