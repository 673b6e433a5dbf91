package main

import "slices"

// command is one subcommand. run returns the exit code.
type command struct {
	name    string
	summary string // in the overview, "" if it is not listed there
	prose   string // the help, with the flags at "{flags}"
	flags   []group
	run     func(a *app, args []string) int
}

// commands are all subcommands in the order in which help lists them.
func commands() []command {
	return []command{
		{"exec", "join the job, set the environment, run PROGRAM",
			execHelp, newOptions().execGroups(), (*app).exec},
		{"check", "compare the nodes of a job before it runs",
			checkHelp, newCheckOptions().checkGroups(), (*app).checkNodes},
		{"status", "print what the ranks of a running job are doing",
			statusHelp, new(statusFlags).groups(), (*app).status},
		{"stacks", "print where the ranks of a running job are",
			stacksHelp, new(statusFlags).stacksGroups(), (*app).stacks},
		{"stop", "end a running job on all its nodes", stopHelp, nil, (*app).stop},
		{"env", "print the environment that exec would set, or explain it",
			envHelp, newOptions().envGroups(), (*app).printEnv},
		{"get-rank", "print the rank of this process",
			getRankHelp, getRankGroups(), (*app).getRank},
		{"store", "run a store for many jobs", storeHelp, newOptions().storeGroups(), (*app).store},
		{"token", "print a new token", tokenHelp, nil, (*app).token},
		{"install", "copy this binary to a directory", installHelp, nil, (*app).install},
		{"version", "print the version", versionHelp, nil, (*app).version},
		{"help", "print the help of a command", helpHelp, nil, (*app).help},
		{"completion", "", completionHelp, nil, (*app).completion},
		{"man", "", manHelp, nil, (*app).man},
	}
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
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
	if c.name != "help" {
		return nil
	}
	words := names(listed())
	for _, t := range topics() {
		words = append(words, t.name)
	}
	return words
}

// takesDirectory tells whether a directory follows a command.
func (c command) takesDirectory() bool { return c.name == "install" }

func names(commands []command) (names []string) {
	for _, c := range commands {
		names = append(names, c.name)
	}
	return names
}
