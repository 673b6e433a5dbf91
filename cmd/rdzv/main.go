// Command rdzv runs a PyTorch program that consists of several processes as one job under any
// launcher. Run "rdzv help".
package main

import (
	"os"
	"slices"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/envmap"
)

func main() {
	environ := os.Environ()
	env := envmap.ParseEnv(environ)
	a := &app{
		environ: environ, env: env, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		console: console.New(os.Stderr, env["TERM"], env["NO_COLOR"] != ""),
	}
	os.Exit(a.run(os.Args[1:]))
}

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
		{"env", "print the environment that exec would set, or explain it",
			envHelp, newOptions().envGroups(), (*app).printEnv},
		{"get-rank", "print the rank of this process",
			getRankHelp, getRankGroups(), (*app).getRank},
		{"token", "print a new token", tokenHelp, nil, (*app).token},
		{"version", "print the version", versionHelp, nil, (*app).version},
		{"help", "print the help of a command", helpHelp, nil, (*app).help},
		{"completion", "", completionHelp, nil, (*app).completion},
		{"man", "", manHelp, nil, (*app).man},
	}
}

// run runs the subcommand and returns the exit code of the process.
func (a *app) run(args []string) int {
	if len(args) == 0 {
		return a.help(nil)
	}
	switch args[0] {
	case "-h", "--help":
		return a.help(nil)
	case "-V", "--version":
		return a.version(nil)
	}
	c, ok := find(args[0])
	if !ok {
		return a.usage(a.unknownCommand(args), "")
	}
	if asksForHelp(args[1:]) {
		return a.print(c.help())
	}
	return c.run(a, args[1:])
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// asksForHelp tells whether a flag before the program asks for help.
func asksForHelp(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "-h") || slices.Contains(args, "--help")
}
