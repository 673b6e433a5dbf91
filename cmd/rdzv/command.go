package main

import (
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
)

// allCommands are all subcommands in the order in which help lists them.
func allCommands() commands {
	type runner = func(*app, []string) int
	of := func(name, summary, prose string, groups []flags.Group, run runner) command {
		return command{flags.Command{Name: name, Summary: summary, Prose: prose, Groups: groups}, run}
	}
	all := commands{
		of("exec", "join the job, set the environment, run PROGRAM",
			execHelp(), options.New().Groups(), (*app).exec),
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
		switch c := &all[i].Command; c.Name {
		case "exec", "check", "env":
			c.Program = true
		case "install":
			c.Directory = true
		case "help":
			c.Operands = flags.Names(all.listed())
		}
	}
	return all
}
