package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/completion"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
)

// command is one subcommand. The overview lists it with Short, unless it is hidden. Long is its
// help, with the flags at "{flags}".
type command struct {
	*cobra.Command
	groups  []flags.Group
	program bool                            // a program with its arguments follows the flags
	run     func(a *app, args []string) int // returns the exit code
}

// commands are subcommands in the order in which help lists them.
type commands []command

// allCommands are all subcommands.
func allCommands() commands {
	type runner = func(*app, []string) int
	of := func(name, summary, prose string, groups []flags.Group, run runner) command {
		return command{Command: &cobra.Command{
			Use: name, Short: summary, Long: prose, Hidden: summary == "",
			ValidArgsFunction: cobra.NoFileCompletions,
		}, groups: groups, run: run}
	}
	all := commands{
		of("exec", "join the job, set the environment, run PROGRAM",
			execHelp(), options.New().ExecGroups(), (*app).exec),
		of("check", "compare the nodes of a job before it runs",
			checkHelp, newCheckFlags().groups(), (*app).checkNodes),
		of("status", "print what the ranks of a running job are doing",
			statusHelp, new(statusFlags).groups(), (*app).status),
		of("stacks", "print where the ranks of a running job are",
			stacksHelp, new(stacksFlags).groups(), (*app).stacks),
		of("stop", "end a running job on all its nodes", stopHelp, nil, (*app).stop),
		of("env", "print the environment that exec would set, or explain it",
			envHelp, newEnvFlags().groups(), (*app).printEnv),
		of("get-rank", "print the rank of this process",
			getRankHelp, getRankGroups(), (*app).getRank),
		of("store", "run a store for many jobs", storeHelp, newStoreFlags().groups(), (*app).store),
		of("token", "print a new token", tokenHelp, nil, (*app).token),
		of("install", "copy this binary to a directory", installHelp, nil, (*app).install),
		of("version", "print the version",
			versionHelp, []flags.Group{flags.Output(new(bool))}, (*app).version),
		of("help", "print the help of a command", helpHelp, nil, (*app).help),
		of("completion", "", completionHelp, nil, (*app).completion),
		of("man", "", manHelp, nil, (*app).man),
	}
	for i := range all {
		switch c := &all[i]; c.Name() {
		case "exec", "check", "env":
			c.program, c.ValidArgsFunction = true, nil
		case "install":
			c.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		case "help":
			c.ValidArgsFunction = oneOf(all.names()...)
		case "completion":
			c.ValidArgsFunction = oneOf(completion.Shells...)
		}
	}
	return all
}

// oneOf completes one of these words, and no files.
func oneOf(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

func (all commands) find(name string) (command, bool) {
	i := slices.IndexFunc(all, func(c command) bool { return c.Name() == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

// names are those of the commands that help lists.
func (all commands) names() (names []string) {
	for _, c := range all {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

// rows are all flags of the command.
func (c command) rows() (rows []flags.Row) {
	for _, g := range c.groups {
		rows = append(rows, g.Rows...)
	}
	return rows
}

// flagSet has the flags of the command.
func (c command) flagSet() *pflag.FlagSet {
	if c.program {
		return options.New().Flags(c.Name(), c.groups)
	}
	return flags.Define(flags.New(c.Name()), c.groups)
}

// help is the help of the command as it is printed.
func (c command) help() string {
	var rows strings.Builder
	for i, g := range c.groups {
		if i > 0 && g.Title != "" {
			rows.WriteString("\n")
		}
		rows.WriteString(g.Help())
	}
	return strings.Replace(c.Long, "{flags}\n", rows.String(), 1)
}

// helpFlag is the flag that asks for help, "" if there is none. It is not a flag of a program.
func (c command) helpFlag(args []string) string {
	for _, flag := range []string{"--help", "-h"} {
		at := slices.Index(args, flag)
		end := slices.Index(args, "--")
		if at >= 0 && (end < 0 || at < end) &&
			(!c.program || flags.Asks(c.flagSet(), args, flag)) {
			return flag
		}
	}
	return ""
}

// run runs the subcommand and returns the exit code of the process.
func (a *app) run(args []string) (code int) {
	if len(args) == 0 || args[0] == "" || args[0][0] == '-' { // cobra looks for commands after flags
		return a.withoutCommand(args)
	}
	if slices.Equal(args, remoteCommand) {
		return a.remote()
	}
	completes := slices.Contains(completion.Requests, args[0]) // otherwise package flags reads flags
	root := &cobra.Command{
		Use: "rdzv", Args: cobra.ArbitraryArgs, SilenceErrors: true, SilenceUsage: true,
		CompletionOptions:  cobra.CompletionOptions{DisableDefaultCmd: true},
		DisableFlagParsing: !completes,
		Run:                func(_ *cobra.Command, args []string) { code = a.withoutCommand(args) },
	}
	for _, c := range a.commands {
		c.DisableFlagParsing = !completes
		c.Run = func(_ *cobra.Command, args []string) { code = a.runCommand(c, args) }
		root.AddCommand(c.Command)
		if c.Name() == "help" {
			root.SetHelpCommand(c.Command)
		}
	}
	var err error
	if completes {
		err = a.addCompletion(root)
	}
	root.SetArgs(args)
	if err = cmp.Or(err, root.Execute()); err != nil {
		return a.usage(err, "")
	}
	return code
}

// withoutCommand handles arguments that do not begin with a command.
func (a *app) withoutCommand(args []string) int {
	switch {
	case len(args) == 0, args[0] == "-h", args[0] == "--help":
		return a.help(nil)
	case args[0] == "-V", args[0] == "--version":
		return a.version(nil)
	}
	return a.usage(unknownCommand(a.commands, args, a.environ), "")
}

// runCommand runs a subcommand with the words after its name, unless these ask for its help.
func (a *app) runCommand(c command, args []string) int {
	switch asked := c.helpFlag(args); {
	case asked == "-h" && c.Name() == "exec":
		return a.print(briefHelp())
	case asked != "":
		return a.print(c.help())
	}
	a.warnOfVariables(c)
	return c.run(a, args)
}
