package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// version is one version in the spelling of each kind of package.
type version struct {
	semantic     string // 1.0.0, 1.0.0-rc.1, or a pseudo-version of Go; "+dirty" may follow
	python       string // PEP 440
	distribution string // deb-version(7) and rpm-version(7), without a revision
	tag          string // of an image
}

// A pseudo-version ends with time and commit (https://go.dev/ref/mod#pseudo-versions). Before the
// first tag it begins with 0.0.0-, behind 1.0.0 with 1.0.1-0., behind 1.0.0-rc.1 with 1.0.0-rc.1.0.
var versionForm = regexp.MustCompile(`^(\d+\.\d+\.\d+)` + // major, minor, patch
	`(?:-(alpha|beta|rc)\.(\d+))?` +
	`(?:[-.](?:0\.)?(\d{14})-([0-9a-f]{12}))?` +
	`(\+dirty)?$`)

func parseVersion(s string) (version, error) {
	m := versionForm.FindStringSubmatch(s)
	if m == nil {
		return version{}, fmt.Errorf("cannot release version %q: want a semantic version such as "+
			"1.0.0, 1.0.0-rc.1 (alpha, beta), or a pseudo-version of Go", s)
	}
	core, phase, number, date, commit, dirty := m[1], m[2], m[3], m[4], m[5], m[6]
	return version{
		semantic:     s,
		python:       core + python(phase, number, date) + dirty,
		distribution: core + distribution(phase, number, date, commit) + dirty,
		tag:          strings.ReplaceAll(s, "+", "_"),
	}, nil
}

// python returns the suffix of 1.0.0: rc1, or rc2.dev20260102030405 between rc1 and rc2.
func python(phase, number, date string) string {
	letters := map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}
	if date == "" {
		return letters[phase] + number
	}
	if phase != "" {
		n, _ := strconv.Atoi(number) // it has only digits
		number = strconv.Itoa(n + 1)
	}
	return letters[phase] + number + ".dev" + date
}

// distribution returns the suffix of 1.0.0: ~rc1, or ~rc1.dev20260102030405.64c12bf1a2b3 between
// rc1 and rc2. What begins with ~ sorts before the version without it.
func distribution(phase, number, date, commit string) string {
	switch {
	case phase == "" && date == "":
		return ""
	case date == "":
		return "~" + phase + number
	case phase == "":
		return "~dev" + date + "." + commit
	}
	return "~" + phase + number + ".dev" + date + "." + commit
}
