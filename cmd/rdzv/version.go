package main

import (
	"fmt"
	"runtime"
)

// release is set by the Makefile: -ldflags "-X main.release=...".
var release = "devel"

const versionHelp = `Usage: rdzv version

    mpirun -np 4 rdzv version

Print the version of rdzv, the Go release that built it, and its platform.

Exit status:
    0        printed
    2        wrong usage
`

func (a *app) version(args []string) int {
	if len(args) > 0 {
		return a.usage(fmt.Errorf("cannot run version: unexpected argument %q", args[0]), "version")
	}
	return a.print(fmt.Sprintf("rdzv %s %s %s/%s\n", release, runtime.Version(), runtime.GOOS,
		runtime.GOARCH))
}
