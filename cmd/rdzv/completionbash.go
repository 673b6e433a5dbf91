package main

import (
	"fmt"
	"strings"
)

// bashProgram is the completion except the words. Readline splits --device=mask at "=".
const bashProgram = `# bash completion for rdzv
_rdzv() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words= i
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			else
				COMPREPLY=($(compgen -A command -A file -- "$current"))
			fi
			return
		fi
	done
	if [[ $current == = ]]; then
		current=
	elif [[ $previous == = ]]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if ((COMP_CWORD == 1)); then
		words="{commands}"
	else
		case "${COMP_WORDS[1]} $previous" in
{values}		*)
			case ${COMP_WORDS[1]} in
{words}			esac
			;;
		esac
	fi
	COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _rdzv rdzv
`

// bashCompletion is the completion for bash.
func bashCompletion(commands []command) string {
	var values, words strings.Builder
	for _, c := range commands {
		all := c.operands()
		for _, r := range c.rows() {
			all = append(all, "--"+r.name())
			if r.short() != "" {
				all = append(all, "-"+r.short())
			}
			values.WriteString(bashValue(c, r))
		}
		if all != nil {
			fmt.Fprintf(&words, "\t\t\t%s) words=%q ;;\n", c.name, strings.Join(all, " "))
		}
	}
	return strings.NewReplacer(
		"{commands}", strings.Join(names(commands), " "),
		"{values}", values.String(), "{words}", words.String(),
	).Replace(bashProgram)
}

// bashValue is the case of a flag's value: files, fixed words, or nothing that can be completed.
func bashValue(c command, r flagRow) string {
	action := fmt.Sprintf("words=%q", strings.Join(r.choices(), " "))
	switch {
	case r.argument() == "":
		return ""
	case r.takesFile():
		action = `compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current")); return`
	}
	return fmt.Sprintf("\t\t%q) %s ;;\n", c.name+" --"+r.name(), action)
}
