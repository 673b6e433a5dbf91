package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestRecordedVersion(t *testing.T) {
	const hash = "64c12bf1a2b3c4d5e6f708192a3b4c5d6e7f8091"
	vcs := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: hash}}
	for _, c := range []struct {
		name            string
		version, commit string // given by the linker
		main            string // version of the main module
		settings        []debug.BuildSetting
		want            build
	}{
		{"make", "1.0.0", hash, "(devel)", nil, build{"1.0.0", hash[:12]}},
		{"make without git", "devel", "", "(devel)", nil, build{"devel", ""}},
		{"go install", "", "", "v1.0.0", nil, build{"1.0.0", ""}},
		{"go build", "", "", "v0.0.0-20261125031243-64c12bf1a2b3+dirty", vcs,
			build{"0.0.0-20261125031243-64c12bf1a2b3+dirty", hash[:12]}},
		{"go build without git", "", "", "(devel)", nil, build{"devel", ""}},
		{"go test", "", "", "", nil, build{"devel", ""}},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.main}, Settings: c.settings}
		if got := recorded(c.version, c.commit, info); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := recorded("", "", nil); got != (build{"devel", ""}) {
		t.Errorf("without build information: %+v", got)
	}
}

func TestVersionLineWithoutCommit(t *testing.T) {
	if line := (build{version: "1.0.0"}).line(); !strings.HasPrefix(line, "rdzv 1.0.0 go1.") {
		t.Errorf("the line is %q", line)
	}
}
