package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	etcd "go.etcd.io/etcd/api/v3/version"
)

const versionHelp = `Usage: rdzv version

    mpirun -np 4 rdzv version

Print the version of rdzv, the commit that it was built from if that is known,
the Go release that built it, the release of the etcd that it contains, and its
platform.

Exit status:
    0        printed
    2        wrong usage
`

func (a *app) version(args []string) int {
	if len(args) > 0 {
		return a.usage(fmt.Errorf("cannot run version: unexpected argument %q", args[0]), "version")
	}
	return a.print(thisBuild().line())
}

// linkedVersion and linkedCommit are set by the Makefile, which does not let Go look for a commit,
// because that fails in a tree of another user: -ldflags "-X main.linkedVersion=1.0.0".
var linkedVersion, linkedCommit string

// build tells what a binary was built from.
type build struct {
	version string // a semantic version without v, or "devel"
	commit  string // 12 hexadecimal digits, or ""
}

func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return recorded(linkedVersion, linkedCommit, info)
}

// recorded is a build of which the linker got version and commit; if it got none, what Go has
// recorded: "go install MODULE@v1.0.0" the version, "go build" in a git repository both.
func recorded(version, commit string, info *debug.BuildInfo) build {
	if info != nil && version == "" {
		version = strings.Trim(strings.TrimPrefix(info.Main.Version, "v"), "()")
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	return build{cmp.Or(version, "devel"), commit[:min(12, len(commit))]}
}

// line is the line that "rdzv version" prints.
func (b build) line() string {
	commit := ""
	if b.commit != "" {
		commit = " commit " + b.commit
	}
	return fmt.Sprintf("rdzv %s%s %s etcd %s %s/%s\n", b.version, commit, runtime.Version(),
		etcd.Version, runtime.GOOS, runtime.GOARCH)
}
