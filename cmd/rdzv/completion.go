package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

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
	script, err := completion.Script(strings.Join(args, " "))
	if err != nil {
		return a.usage(err, "completion")
	}
	return a.print(script)
}

// addCompletion adds all flags, which cobra completes, and the command that prints where in a
// command line the program begins. Its arguments are the words after rdzv, up to the one that is
// being completed.
func (a *app) addCompletion(root *cobra.Command) error {
	root.Flags().BoolP("version", "V", false, "print the version")
	for _, c := range a.commands {
		if err := completion.Define(c.Command, c.flagSet(), c.rows()); err != nil {
			return err
		}
	}
	root.AddCommand(&cobra.Command{
		Use: completion.Program, Hidden: true, DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			if len(args) == 0 {
				return
			}
			if c, _ := a.commands.find(args[0]); c.program {
				if at := completion.ProgramAt(c.flagSet(), args[1:]); at >= 0 {
					a.print(strconv.Itoa(at+2) + "\n")
				}
			}
		},
	})
	return nil
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
