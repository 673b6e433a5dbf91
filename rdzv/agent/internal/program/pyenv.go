package program

import (
	"path"
	"slices"
	"strings"
)

// What pyenv's shims run, without running them: they are scripts with the names of all programs of
// all versions, and files and variables choose the version.
//
// Source: libexec/pyenv-version-file, pyenv-version-name, pyenv-latest and pyenv-exec of pyenv 2.4.

var pyenvRoot = pattern{expr: `(?m)^\s*export PYENV_ROOT="([^"$]+)"`}

// pyenvProgram is the file of a program that a shim with this text runs; "" if it is not known.
func (f files) pyenvProgram(shim, name string, env map[string]string) string {
	found := pyenvRoot.compiled().FindStringSubmatch(shim)
	if found == nil {
		return ""
	}
	root := found[1]
	versions := strings.FieldsFunc(env["PYENV_VERSION"], func(r rune) bool { return r == ':' })
	if len(versions) == 0 {
		versions = f.pyenvVersions(root, env["PYENV_DIR"])
	}
	for _, version := range versions {
		if version == "system" {
			return f.find(name, withoutDir(env["PATH"], path.Join(root, "shims")))
		}
		bin := path.Join(root, "versions", f.installed(root, version), "bin")
		if file := f.executable(path.Join(bin, name)); file != "" {
			return file
		}
	}
	return ""
}

// pyenvVersions are those of the first file with versions: .python-version in a directory (that of
// the process if it is "") or above it, else the global one.
func (f files) pyenvVersions(root, dir string) []string {
	for at := f.abs(dir); ; at = path.Dir(at) {
		if versions := parseVersions(f.read(path.Join(at, ".python-version"), maxText)); versions != nil {
			return versions
		}
		if at == "/" {
			break
		}
	}
	if versions := parseVersions(f.read(path.Join(root, "version"), maxText)); versions != nil {
		return versions
	}
	return []string{"system"}
}

// parseVersions are the words of a file with versions, without comments.
func parseVersions(text string) (versions []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		versions = append(versions, strings.Fields(line)...)
	}
	return versions
}

// installed is the directory of a version: its own or, for a part of a version, the latest one.
func (f files) installed(root, version string) string {
	dir := path.Join(root, "versions")
	for _, name := range []string{version, strings.TrimPrefix(version, "python-")} {
		if f.isDir(path.Join(dir, name)) {
			return name
		}
	}
	var latest string
	for _, name := range f.list(dir) {
		if strings.HasPrefix(name, version+".") && compareVersions(name, latest) > 0 {
			latest = name
		}
	}
	return latest
}

// compareVersions compares versions by their numbers: 3.9.1 is before 3.11.0.
func compareVersions(a, b string) int {
	number := func(text string) string { // with the same order as text
		return strings.Repeat("0", max(0, 9-len(text))) + text
	}
	parts := func(version string) (numbers []string) {
		for part := range strings.SplitSeq(version, ".") {
			numbers = append(numbers, number(part))
		}
		return numbers
	}
	return slices.Compare(parts(a), parts(b))
}

// withoutDir is a list of directories without one of them.
func withoutDir(list, dir string) string {
	isIt := func(d string) bool { return path.Clean(d) == dir }
	return strings.Join(slices.DeleteFunc(strings.Split(list, ":"), isIt), ":")
}
