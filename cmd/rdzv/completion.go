package main

import (
	"fmt"
	"slices"
	"strings"

	"rdzv/envmap"
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

// listed are the commands that help lists.
func listed() []command {
	return slices.DeleteFunc(commands(), func(c command) bool { return c.summary == "" })
}

// rows are all flags of a command.
func (c command) rows() (rows []flagRow) {
	for _, g := range c.flags {
		rows = append(rows, g.rows...)
	}
	return rows
}

// operands are the words that can follow a command, other than flags.
func (c command) operands() []string {
	if c.name == "help" {
		return names(listed())
	}
	return nil
}

func names(commands []command) (names []string) {
	for _, c := range commands {
		names = append(names, c.name)
	}
	return names
}

// choices are the values of a flag, nil if it has no fixed ones.
func (r flagRow) choices() []string {
	switch argument := r.argument(); {
	case r.name() == "launcher":
		return envmap.Choices()
	case r.name() == "device":
		return envmap.DeviceModes()
	case r.name() == "nproc-per-node":
		return []string{"gpu", "cpu", "auto"}
	case argument == "" || argument != strings.ToLower(argument):
		return nil
	default: // sh|json
		return strings.Split(argument, "|")
	}
}

func (r flagRow) takesFile() bool { return r.argument() == "FILE" }
