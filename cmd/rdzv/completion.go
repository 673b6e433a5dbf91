package main

import (
	"fmt"
	"strings"
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
		return a.print(bashCompletion(listed()))
	case "zsh":
		return a.print(zshCompletion(listed()))
	case "fish":
		return a.print(fishCompletion(listed()))
	}
	return a.usage(fmt.Errorf("cannot print the completion for %q: must be bash, zsh or fish",
		strings.Join(args, " ")), "completion")
}
