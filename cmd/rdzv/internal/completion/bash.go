// Package completion writes the completions of rdzv for shells.
package completion

import (
	"fmt"
	"slices"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
)

// bashProgram is the completion except the words. Readline splits --device=mask at "=".
const bashProgram = `# bash completion for rdzv
_rdzv() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words= program=
	_rdzv_program
	if [[ $program ]]; then
		if declare -F _comp_command_offset >/dev/null; then # bash-completion 2.12
			_comp_command_offset $program
		elif declare -F _command_offset >/dev/null; then
			_command_offset $program
		else
			COMPREPLY=($(compgen -A command -A file -- "$current"))
		fi
		return
	fi
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

# Sets program to the index of the first word of the program: after --, or the first word that is
# neither a flag nor the value of one.
_rdzv_program() {
	local i
	[[ " {programs} " == *" ${COMP_WORDS[1]} "* ]] || return
	for ((i = 2; i <= COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)
			((i == COMP_CWORD)) || program=$((i + 1))
			return
			;;
		-* | = | '') ;;
		*)
			if [[ " = {valued} " != *" ${COMP_WORDS[i - 1]} "* ]]; then
				program=$i
				return
			fi
			;;
		esac
	done
}

# A launcher before rdzv. What is before rdzv is completed as without this function: by that of the
# launcher, which is called _srun for srun, if there is one.
_rdzv_launched() {
	local i name=${1##*/}
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]##*/} == rdzv ]]; then
			COMP_WORDS=("${COMP_WORDS[@]:i}")
			((COMP_CWORD -= i))
			_rdzv
			return
		fi
	done
	if ! declare -F "_$name" >/dev/null && [[ -r /usr/share/bash-completion/completions/$name ]]; then
		source "/usr/share/bash-completion/completions/$name"
		_rdzv_launchers "$name" # it has completed by its function alone
	fi
	if declare -F "_$name" >/dev/null; then
		"_$name" "$@"
	fi
}

# Completes after these launchers, unless the user has another function for one of them.
_rdzv_launchers() {
	local name
	for name; do
		case $(complete -p "$name" 2>/dev/null) in
		'' | *" -F _$name "* | *' -F _minimal '*)
			complete -o bashdefault -o default -F _rdzv_launched "$name"
			;;
		esac
	done
}
_rdzv_launchers {launchers}
`

// bashLaunchers are the commands after which bash completes those of rdzv. make install links the
// file under these names.
const bashLaunchers = "mpirun mpirun.openmpi mpirun.mpich mpiexec mpiexec.hydra prterun srun"

// Bash is the completion for bash.
func Bash(commands []flags.Command) string {
	var values, words strings.Builder
	for _, c := range commands {
		all := c.Operands
		for _, r := range c.Rows() {
			all = append(all, "--"+r.Name())
			if r.Short() != "" {
				all = append(all, "-"+r.Short())
			}
			values.WriteString(bashValue(c, r))
		}
		switch {
		case all != nil:
			fmt.Fprintf(&words, "\t\t\t%s) words=%q ;;\n", c.Name, strings.Join(all, " "))
		case c.Directory:
			fmt.Fprintf(&words, "\t\t\t%s) %s ;;\n", c.Name, bashDirectories)
		}
	}
	programs, valued := bashPrograms(commands)
	return strings.NewReplacer(
		"{programs}", programs, "{valued}", valued, "{launchers}", bashLaunchers,
		"{commands}", strings.Join(flags.Names(commands), " "),
		"{values}", values.String(), "{words}", words.String(),
	).Replace(bashProgram)
}

// bashPrograms are the commands that a program follows, and their flags that a value follows.
func bashPrograms(commands []flags.Command) (programs, valued string) {
	var names, words []string
	for _, c := range commands {
		if !c.Program {
			continue
		}
		names = append(names, c.Name)
		for _, r := range c.Rows() {
			if r.Argument() != "" && !strings.Contains(r.Usage, "[=") {
				words = append(words, "--"+r.Name())
			}
		}
	}
	slices.Sort(words)
	return strings.Join(names, " "), strings.Join(slices.Compact(words), " ")
}

const (
	bashFiles = `compopt -o filenames 2>/dev/null; ` +
		`COMPREPLY=($(compgen -f -- "$current")); return`
	bashDirectories = `compopt -o filenames 2>/dev/null; ` +
		`COMPREPLY=($(compgen -d -- "$current")); return`
)

// bashValue is the case of a flag's value: files, directories, fixed words, or nothing that can be
// completed.
func bashValue(c flags.Command, r flags.Row) string {
	action := fmt.Sprintf("words=%q", strings.Join(r.Choices(), " "))
	switch {
	case r.Argument() == "":
		return ""
	case r.TakesFile():
		action = bashFiles
	case r.TakesDirectory():
		action = bashDirectories
	}
	return fmt.Sprintf("\t\t%q) %s ;;\n", c.Name+" --"+r.Name(), action)
}
