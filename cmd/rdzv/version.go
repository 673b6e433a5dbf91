package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/flags"

	etcd "go.etcd.io/etcd/api/v3/version"
)

const versionHelp = `Usage: rdzv version [flags]

    mpirun -np 4 rdzv version

Print the version of rdzv, the commit that it was built from if that is known,
the Go release that built it, the release of the etcd that it contains, and its
platform.

{flags}

Exit status:
    0        printed
    2        wrong usage
`

func (a *app) version(args []string) int {
	asJSON := false
	f := flags.Define(flags.New("version"), []flags.Group{flags.Output(&asJSON)})
	rest, err := flags.Parse(f, args, a.env)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("cannot run version: unexpected argument %q", rest[0])
	}
	if err != nil {
		return a.usage(err, "version")
	}
	b := thisBuild()
	return a.show(asJSON, b.parts(), func(console.Destination) string { return b.line() })
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

// parts are what a build consists of, by name.
func (b build) parts() map[string]string {
	return map[string]string{
		"version": b.version, "commit": b.commit, "go": runtime.Version(), "etcd": etcd.Version,
		"platform": runtime.GOOS + "/" + runtime.GOARCH,
	}
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
