package main

import (
	"fmt"
	"strings"
)

// zshProgram is the completion except the words. Installed as _rdzv in a directory of fpath it is
// the body of the function; evaluated it defines the function.
const zshProgram = `#compdef rdzv
_rdzv() {
	if ((CURRENT == 2)); then
		local -a commands=(
{commands}		)
		_describe command commands
		return
	fi
	shift words
	((CURRENT--))
	case $words[1] in
{flags}	esac
}
if [[ $funcstack[1] == _rdzv ]]; then
	_rdzv "$@"
else
	compdef _rdzv rdzv
fi
`

var zshQuoted = strings.NewReplacer(`[`, `\[`, `]`, `\]`, `:`, `\:`, `'`, `'\''`)

// zshCompletion is the completion for zsh.
func zshCompletion(commands []command) string {
	var list, flags strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&list, "\t\t\t'%s:%s'\n", c.name, zshQuoted.Replace(c.summary))
		fmt.Fprintf(&flags, "\t%s)\n\t\t_arguments -S", c.name)
		for _, r := range c.rows() {
			flags.WriteString(" \\\n\t\t\t" + zshFlag(r))
		}
		switch {
		case c.name == "exec":
			flags.WriteString(" \\\n\t\t\t'(-)1:program: _command_names -e' '*::argument: _normal'")
		case c.takesDirectory():
			flags.WriteString(" '1:directory:_files -/'")
		case c.operands() != nil:
			fmt.Fprintf(&flags, " '1: :(%s)'", strings.Join(c.operands(), " "))
		}
		flags.WriteString("\n\t\t;;\n")
	}
	return strings.NewReplacer(
		"{commands}", list.String(), "{flags}", flags.String(),
	).Replace(zshProgram)
}

// zshFlag is a flag as an argument of _arguments.
func zshFlag(r flagRow) string {
	text := zshQuoted.Replace(r.text)
	switch name, argument := r.name(), zshQuoted.Replace(r.argument()); {
	case r.short() != "":
		return fmt.Sprintf("'(-%[1]s --%[2]s)'{-%[1]s,--%[2]s}'[%[3]s]'", r.short(), name, text)
	case argument == "":
		return fmt.Sprintf("'--%s[%s]'", name, text)
	case r.takesFile():
		return fmt.Sprintf("'--%s=[%s]:%s:_files'", name, text, argument)
	case r.takesDirectory():
		return fmt.Sprintf("'--%s=[%s]:%s:_files -/'", name, text, argument)
	default:
		return fmt.Sprintf("'%s--%s=[%s]:%s:(%s)'",
			r.repeatable("*"), name, text, argument, strings.Join(r.choices(), " "))
	}
}

// repeatable is text if the flag can be given several times.
func (r flagRow) repeatable(text string) string {
	switch r.value.(type) {
	case *[]string, *commaList, *exportValue:
		return text
	}
	return ""
}
