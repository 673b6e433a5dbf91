// Package completion completes command lines of rdzv in shells: by package cobra the commands,
// flags and their values, and by the shell itself the program that rdzv runs, and its arguments.
package completion

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/flags"
)

// What the scripts for the shells do besides cobra's.
var (
	//go:embed program.bash
	programBash string
	//go:embed program.zsh
	programZsh string
	//go:embed program.fish
	programFish string
)

// Program is the command by which a script asks where the program begins.
const Program = "__program"

// Requests are the commands of scripts.
var Requests = []string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd, Program}

// Shells are those for which there is a script.
var Shells = []string{"bash", "zsh", "fish"}

// Script is what a shell evaluates. It asks rdzv itself for words that complete a command line.
func Script(shell string) (string, error) {
	var b strings.Builder
	root := &cobra.Command{Use: "rdzv"}
	switch shell {
	case "bash":
		err := root.GenBashCompletionV2(&b, true)
		return b.String() + programBash, err
	case "zsh":
		err := root.GenZshCompletion(&b)
		return strings.Replace(b.String(), "_rdzv()\n", programZsh+"_rdzv_own()\n", 1), err
	case "fish":
		err := root.GenFishCompletion(&b, true)
		return b.String() + programFish, err
	}
	return "", fmt.Errorf("cannot print the completion for %q: must be bash, zsh or fish", shell)
}

// Define gives a command flags that cobra completes, and their values as the rows tell: files,
// directories or fixed words.
func Define(c *cobra.Command, f *pflag.FlagSet, rows []flags.Row) error {
	c.Flags().SetInterspersed(false) // what follows a program is not for rdzv
	c.Flags().SetNormalizeFunc(flags.Canonical)
	c.Flags().AddFlagSet(f)
	for _, r := range rows {
		directive := cobra.ShellCompDirectiveNoFileComp
		switch {
		case r.Argument() == "", r.TakesFile():
			continue
		case r.TakesDirectory():
			directive = cobra.ShellCompDirectiveFilterDirs
		}
		values := cobra.FixedCompletions(r.Choices(), directive)
		if err := c.RegisterFlagCompletionFunc(r.Name(), values); err != nil {
			return err
		}
	}
	return nil
}

// ProgramAt is the index of the first word of the program among the words after a command, the last
// of which is being completed; -1 if that one is before the program, or may still become a flag.
func ProgramAt(f *pflag.FlagSet, words []string) int {
	var args []string
	var starts []int // where these begin: readline has split --flag=value into three words
	for i, word := range words {
		if i > 0 && (word == "=" || words[i-1] == "=") {
			args[len(args)-1] += word
		} else {
			args, starts = append(args, word), append(starts, i)
		}
	}
	program, _ := flags.Parse(f, args, nil) // wrong flags have a program too
	if len(program) == 0 || len(program) == 1 && program[0] == "-" {
		return -1
	}
	return starts[len(args)-len(program)]
}
