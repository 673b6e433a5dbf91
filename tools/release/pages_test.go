package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every link of a page in the archive, the .deb and the .rpm leads to a file in it.
func TestLinksInPackages(t *testing.T) {
	r := fake()
	var err error
	if r.pages, err = pages("../.."); err != nil {
		t.Fatal(err)
	}
	deb, errDeb := packaged(r, r.programs[0], "deb")
	rpm, errRPM := packaged(r, r.programs[0], "rpm")
	if errDeb != nil || errRPM != nil {
		t.Fatal(errDeb, errRPM)
	}
	for _, files := range [][]file{r.installed(r.programs[0]), deb, rpm} {
		has := func(name string) bool {
			return slices.ContainsFunc(files, func(f file) bool { return f.path == name })
		}
		links := 0
		for _, f := range files {
			for _, to := range linksOf(f.path, f.data) {
				if links++; !has(to) {
					t.Errorf("%s: the link to %s leads nowhere", f.path, to)
				}
			}
		}
		if links < 50 {
			t.Errorf("%d links, want those of all pages", links)
		}
	}
}

// The pages are below share/doc/rdzv of the archive and of the package for Debian.
func TestPagesInPackages(t *testing.T) {
	dist := pack(t)
	for file, command := range map[string][]string{
		"rdzv_1.0.0-rc.1_linux_amd64.tar.gz": {"tar", "-tzf"},
		"rdzv_1.0.0~rc1_amd64.deb":           {"dpkg-deb", "--contents"},
	} {
		args := append(command[1:], filepath.Join(dist, file))
		out, err := exec.CommandContext(t.Context(), command[0], args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "share/doc/rdzv/docs/reference/files.md") {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
