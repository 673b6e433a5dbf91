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

// asksForHelp tells whether a flag before the program asks for help.
func asksForHelp(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "-h") || slices.Contains(args, "--help")
}
