package main

import (
	"fmt"

	"rdzv/rdzv/secret"
)

const tokenHelp = `Usage: rdzv token

    (umask 077; rdzv token > token)         and copy the file to every node
    rdzv exec --token-file token --nodes 2 -- python3 main.py

Print a new token: the secret that all agents of a job share. If your nodes have
the same home directory you do not need this command: exec creates a token in
~/.config/rdzv/token when it first needs one.

The token can also be in RDZV_TOKEN. Never pass it on a command line, which
every user of the node can read.

Exit status:
    0        printed
    2        wrong usage
`

func (a *app) token(args []string) int {
	if len(args) > 0 {
		return a.usage(fmt.Errorf("cannot run token: unexpected argument %q", args[0]), "token")
	}
	return a.print(secret.NewToken() + "\n")
}
