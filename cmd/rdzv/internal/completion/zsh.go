package completion

import (
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
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

// Zsh is the completion for zsh.
func Zsh(commands []flags.Command) string {
	var list, cases strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&list, "\t\t\t'%s:%s'\n", c.Name, zshQuoted.Replace(c.Summary))
		fmt.Fprintf(&cases, "\t%s)\n\t\t_arguments -S", c.Name)
		for _, r := range c.Rows() {
			cases.WriteString(" \\\n\t\t\t" + zshFlag(r))
		}
		switch {
		case c.Program:
			cases.WriteString(" \\\n\t\t\t'(-)1:program: _command_names -e' '*::argument: _normal'")
		case c.Directory:
			cases.WriteString(" '1:directory:_files -/'")
		case c.Operands != nil:
			fmt.Fprintf(&cases, " '1: :(%s)'", strings.Join(c.Operands, " "))
		}
		cases.WriteString("\n\t\t;;\n")
	}
	return strings.NewReplacer(
		"{commands}", list.String(), "{flags}", cases.String(),
	).Replace(zshProgram)
}

// zshFlag is a flag as an argument of _arguments.
func zshFlag(r flags.Row) string {
	text := zshQuoted.Replace(r.Text)
	switch name, argument := r.Name(), zshQuoted.Replace(r.Argument()); {
	case r.Short() != "":
		return fmt.Sprintf("'(-%[1]s --%[2]s)'{-%[1]s,--%[2]s}'[%[3]s]'", r.Short(), name, text)
	case argument == "":
		return fmt.Sprintf("'--%s[%s]'", name, text)
	case r.TakesFile():
		return fmt.Sprintf("'--%s=[%s]:%s:_files'", name, text, argument)
	case r.TakesDirectory():
		return fmt.Sprintf("'--%s=[%s]:%s:_files -/'", name, text, argument)
	default:
		often := ""
		if r.Repeatable() {
			often = "*"
		}
		return fmt.Sprintf("'%s--%s=[%s]:%s:(%s)'",
			often, name, text, argument, strings.Join(r.Choices(), " "))
	}
}
