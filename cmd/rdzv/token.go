package main

import (
	"fmt"

	"rdzv/rdzv/meet"
)

const tokenHelp = `Usage: rdzv token

Print a new token: a secret that all agents of your jobs share. Where the nodes
share your home directory you need none, exec keeps one in ~/.config/rdzv/token.
Elsewhere give every node the same:

    rdzv token > token && chmod 600 token      then copy the file to every node
    rdzv exec --token-file token --nodes 2 -- python3 main.py

RDZV_TOKEN in the environment serves as well. A token on a command line can be
read by everybody on that node.
`

func (a *app) token(args []string) int {
	if len(args) > 0 {
		return a.say.usage(codeUsage, fmt.Errorf("cannot run token: unexpected argument %q", args[0]), "token")
	}
	return a.print(meet.NewToken() + "\n")
}
