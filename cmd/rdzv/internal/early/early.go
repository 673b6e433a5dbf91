// Package early answers "rdzv get-rank" before the rest of the program is
// initialised.
//
// A binary with etcd in it spends about 10 ms on the initialisation of some 270
// packages before main begins; a script that asks for its rank would pay that
// for one number. Go initialises packages in the order of their import paths
// among those whose imports are ready (Go specification, "Package
// initialization"), and "rdzv/cmd/..." sorts before "reflect", on which nearly
// everything else rests: a package that imports neither reflect nor anything
// behind it in the alphabet comes after some 25 others.
//
// What envmap imports must therefore not rest on reflect: no fmt, sort,
// encoding/json, regexp, net. It does import strings, which sorts behind reflect
// too, so that this package comes after about half of all. A test holds that none
// of the heavy ones (crypto/tls, grpc, etcd's server) is among them.
//
// Its init function answers a well-formed question that has an answer; everything
// else it leaves to main, which explains.
package early

import (
	"os"
	"strconv"

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

// answer is the number that args ask for, if they are one known flag at most and
// the number is known.
func answer(args []string, env envmap.Env) (int, bool) {
	what := Rank
	switch len(args) {
	case 0:
	case 1:
		what = Number(args[0])
	default:
		return 0, false
	}
	if _, known := numbers[what]; !known {
		return 0, false
	}
	n, err := Of(what, env, envmap.Launcher(env["RDZV_LAUNCHER"]))
	return n, err == nil && n != envmap.Unknown
}

// Number is one of the numbers that say where a process is, by its flag.
type Number string

const (
	Rank      Number = ""
	Local     Number = "--local"
	Node      Number = "--node"
	Size      Number = "--size"
	LocalSize Number = "--local-size"
	Nodes     Number = "--nodes"
)

// numbers tells where each number is in a placement.
var numbers = map[Number]func(envmap.Placement) int{
	Rank:      func(p envmap.Placement) int { return p.Rank },
	Local:     func(p envmap.Placement) int { return p.LocalRank },
	Node:      func(p envmap.Placement) int { return p.NodeRank },
	Size:      func(p envmap.Placement) int { return p.Size },
	LocalSize: func(p envmap.Placement) int { return p.LocalSize },
	Nodes:     func(p envmap.Placement) int { return p.Nodes },
}

// Of returns the number, or envmap.Unknown where it is not told. In a worker of
// rdzv the worker's own variables alone count, unless a launcher is named.
func Of(what Number, env envmap.Env, launcher envmap.Launcher) (int, error) {
	p, inside, err := envmap.Inside(env)
	if !inside || launcher != "" {
		p, err = envmap.Detect(env, launcher)
	}
	if err != nil {
		return envmap.Unknown, err
	}
	return numbers[what](p), nil
}
