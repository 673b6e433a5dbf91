package main

import (
	"slices"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
)

// command is one subcommand. run returns the exit code.
type command struct {
	flags.Command
	run func(a *app, args []string) int
}

// commands are all subcommands in the order in which help lists them.
func commands() []command {
	type runner = func(*app, []string) int
	of := func(name, summary, prose string, groups []flags.Group, run runner) command {
		return command{flags.Command{Name: name, Summary: summary, Prose: prose, Groups: groups}, run}
	}
	all := []command{
		of("exec", "join the job, set the environment, run PROGRAM",
			execHelp, options.New().Groups(), (*app).exec),
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
		of("version", "print the version", versionHelp, nil, (*app).version),
		of("help", "print the help of a command", helpHelp, nil, (*app).help),
		of("completion", "", completionHelp, nil, (*app).completion),
		of("man", "", manHelp, nil, (*app).man),
	}
	for i := range all {
		switch c := &all[i].Command; c.Name {
		case "install":
			c.Directory = true
		case "help":
			c.Operands = helpOperands(all)
		}
	}
	return all
}

// helpOperands are the commands that help lists, and the topics.
func helpOperands(all []command) (words []string) {
	for _, c := range all {
		if c.Summary != "" {
			words = append(words, c.Name)
		}
	}
	for _, t := range topics() {
		words = append(words, t.name)
	}
	return words
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.Name == name {
			return c, true
		}
	}
	return command{}, false
}

// listed are the commands that help lists.
func listed() (list []flags.Command) {
	for _, c := range commands() {
		if c.Summary != "" {
			list = append(list, c.Command)
		}
	}
	return list
}

// knownVariables are the RDZV_ variables that a user can set.
func knownVariables() []string {
	known := []string{
		"RDZV_TOKEN", "RDZV_JOIN", "RDZV_TERMINATION_LOG", "RDZV_PYTHON", "RDZV_NO_CAPTURE",
		"RDZV_EXPORT_FILE", "RDZV_NODE_AGENT",
	}
	for _, c := range commands() {
		for _, g := range c.Groups {
			for _, r := range g.Rows {
				if !g.NoEnv {
					known = append(known, flags.Variable(r.Name()))
				}
			}
		}
	}
	return slices.Concat(known, workerVariables)
}

// workerVariables are those beginning with RDZV_ that exec and env set for workers.
var workerVariables = []string{"RDZV_RUN_ID", "RDZV_ATTEMPT", "RDZV_DETECTED", "RDZV_DEVICE_INDEX"}
