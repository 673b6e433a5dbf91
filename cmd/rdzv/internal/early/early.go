// Package early answers "rdzv get-rank" before the rest of the program is initialised.
//
// A binary that contains etcd spends about 10 ms on the initialisation of its packages before main
// starts, which a script would pay for one number. Among packages whose imports are initialised Go
// chooses the one with the first import path (Go specification, "Package initialization"): before
// this one those that are ready and sort before "rdzv/...", about half of all, but not the
// expensive ones: crypto/tls, grpc and etcd's server, as a test checks. They depend on package net,
// and that on "vendor/golang.org/...". So envmap must not import net.
//
// The init function answers well-formed questions that have an answer; main handles all others.
package early

import (
	"os"
	"strconv"
	"strings"

	"rdzv/envmap"
)

func init() {
	if len(os.Args) < 2 || os.Args[1] != "get-rank" {
		return
	}
	if n, ok := answer(os.Args[2:], envmap.ParseEnv(os.Environ())); ok {
		if _, err := os.Stdout.WriteString(strconv.Itoa(n) + "\n"); err == nil {
			os.Exit(0)
		}
	}
}

// answer is the requested number, if args are at most one known flag and the number is known.
func answer(args []string, env envmap.Env) (int, bool) {
	flag := strings.Join(args, " ")
	for _, n := range Numbers {
		if n.Flag == flag {
			value, err := n.Of(env, envmap.Launcher(env["RDZV_LAUNCHER"]))
			return value, err == nil && value != envmap.Unknown
		}
	}
	return 0, false
}

// Number is one of the numbers of a placement.
type Number struct {
	Flag string // with which get-rank prints it, "" if it needs none
	Name string // in messages
	in   func(envmap.Placement) int
}

// Numbers are all of them. The first one needs no flag.
var Numbers = []Number{
	{"", "rank", func(p envmap.Placement) int { return p.Rank }},
	{"--local", "local rank", func(p envmap.Placement) int { return p.LocalRank }},
	{"--node", "node rank", func(p envmap.Placement) int { return p.NodeRank }},
	{"--size", "number of tasks", func(p envmap.Placement) int { return p.Size }},
	{"--local-size", "number of tasks on this node", localSize},
	{"--nodes", "number of nodes", func(p envmap.Placement) int { return p.Nodes }},
}

func localSize(p envmap.Placement) int { return p.LocalSize }

// Of returns the number, or envmap.Unknown. In a worker of rdzv only the worker's own variables are
// used, unless a launcher is named.
func (n Number) Of(env envmap.Env, launcher envmap.Launcher) (int, error) {
	p, inside, err := envmap.Inside(env)
	if !inside || launcher != "" {
		p, err = Detect(env, launcher)
	}
	if err != nil || p.Unclaimed != "" {
		return envmap.Unknown, err
	}
	return n.in(p), nil
}

// Detect takes the placement with the number of nodes that RDZV_NODES gives. RDZV_NODES=MIN:MAX
// gives none: ranks are then not those of the launcher.
func Detect(env envmap.Env, launcher envmap.Launcher) (envmap.Placement, error) {
	nodes, _ := strconv.Atoi(env["RDZV_NODES"])
	return envmap.DetectGiven(env, envmap.Given{Launcher: launcher, Nodes: nodes})
}
