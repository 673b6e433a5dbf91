// Command rdzv runs a PyTorch program that consists of several processes as one job under any
// launcher. Run "rdzv help".
package main

import "os"

func main() {
	os.Exit(newApp(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr).run())
}

// command is one subcommand. run returns the exit code.
type command struct {
	name string
	help string
	run  func(a *app, args []string) int
}

// commands are all subcommands in the order in which help lists them.
func commands() []command {
	return []command{
		{"exec", execHelp, (*app).exec},
		{"env", envHelp, (*app).printEnv},
		{"get-rank", getRankHelp, (*app).getRank},
		{"token", tokenHelp, (*app).token},
		{"version", versionHelp, (*app).version},
		{"help", helpHelp, (*app).help},
	}
}

// run runs the subcommand and returns the exit code of the process.
func (a *app) run() int {
	if len(a.args) == 0 {
		return a.help(nil)
	}
	name, args := a.args[0], a.args[1:]
	switch name {
	case "-h", "--help":
		return a.help(nil)
	case "-V", "--version":
		return a.version(nil)
	}
	c, ok := find(name)
	if !ok {
		return a.usage(codeUsage, unknownCommand(a.args), "")
	}
	if asksForHelp(args) {
		return a.print(c.help)
	}
	return c.run(a, args)
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
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "-h", "--help":
			return true
		}
	}
	return false
}
