package main

import (
	"errors"
	"fmt"
	"os"

	"rdzv/envmap"
)

// app is one run of the command: what it was given by its process, and nothing
// else of the process is used anywhere but here and in process.go.
type app struct {
	args    []string
	environ []string
	env     envmap.Env
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	say     *say
}

func newApp(args, environ []string, stdin, stdout, stderr *os.File) *app {
	env := envmap.ParseEnv(environ)
	return &app{
		args: args, environ: environ, env: env,
		stdin: stdin, stdout: stdout, stderr: stderr, say: newSay(patiently(stderr), screenOf(stderr, env)),
	}
}

// command is one subcommand: its name, its help, and what it does. It returns
// the exit code.
type command struct {
	name string
	help string
	run  func(a *app, args []string) int
}

// commands returns all subcommands in the order in which help lists them.
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

// run picks the subcommand and returns the exit code of the process.
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
		return a.say.usage(codeUsage, unknownCommand(a.args), "")
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

// asksForHelp looks at the flags before the program.
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

// print writes data that was asked for to standard output.
func (a *app) print(text string) int {
	if _, err := a.stdout.WriteString(text); err != nil {
		return a.say.fail(codeUnknown, fmt.Errorf("cannot write to standard output: %w", errors.Unwrap(err)))
	}
	return codeOK
}
