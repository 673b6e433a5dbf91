package main

import (
	_ "embed"
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/completion"
)

const completionHelp = `Usage: rdzv completion bash|zsh|fish

    eval "$(rdzv completion bash)"

Print the completion of rdzv's commands and flags for a shell. "make install"
installs all three where the shells look for them.

Exit status:
    0        printed
    2        wrong usage
`

func (a *app) completion(args []string) int {
	switch strings.Join(args, " ") {
	case "bash":
		return a.print(completion.Bash(a.commands.listed()))
	case "zsh":
		return a.print(completion.Zsh(a.commands.listed()))
	case "fish":
		return a.print(completion.Fish(a.commands.listed()))
	}
	return a.usage(fmt.Errorf("cannot print the completion for %q: must be bash, zsh or fish",
		strings.Join(args, " ")), "completion")
}

const manHelp = `Usage: rdzv man

    rdzv man | man -l -

Print the manual page rdzv(1), which contains the help of all commands. "make
install" installs it.

Exit status:
    0        printed
    2        wrong usage
`

// manual is the manual page, with {version} where the version of rdzv is.
//
//go:embed rdzv.1
var manual string

func (a *app) man(args []string) int {
	if len(args) > 0 {
		return a.usage(fmt.Errorf("cannot run man: unexpected argument %q", args[0]), "man")
	}
	version := strings.ReplaceAll(thisBuild().version, "-", `\-`)
	return a.print(strings.Replace(manual, "{version}", version, 1))
}
