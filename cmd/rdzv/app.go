package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// app is one run of the command, with what belongs to its process.
type app struct {
	args    []string
	environ []string
	env     envmap.Env
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	console *console.Console
}

func newApp(args, environ []string, stdin, stdout, stderr *os.File) *app {
	env := envmap.ParseEnv(environ)
	return &app{
		args: args, environ: environ, env: env,
		stdin: stdin, stdout: stdout, stderr: stderr,
		console: console.New(stderr, env["TERM"], env["NO_COLOR"] != ""),
	}
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

// print writes the requested data to stdout.
func (a *app) print(text string) int {
	if _, err := a.stdout.WriteString(text); err != nil {
		return a.fail(codeUnknown, fmt.Errorf("cannot write to stdout: %w", errors.Unwrap(err)))
	}
	return codeOK
}

// fail prints an error and its hint, and returns the code.
func (a *app) fail(code int, err error) int {
	a.console.Fail(err)
	return code
}

// usage prints what is wrong with the command line, and returns the code.
func (a *app) usage(code int, err error, command string) int {
	a.console.Error("%v", err)
	hint := agent.Hint(err)
	if hint == "" {
		hint = strings.TrimSpace("rdzv help " + command)
	}
	a.console.Hint(hint)
	return code
}

// hinted is an error with a suggestion.
type hinted struct {
	error
	hint string
}

func (h hinted) Hint() string  { return h.hint }
func (h hinted) Unwrap() error { return h.error }
