package program

import (
	"path"
	"strings"
)

// python is an interpreter, with what determines where it searches for modules.
type python struct {
	files
	env     map[string]string
	options options
	file    string // as it is called
	version string // "3.11"; "" if it is not known
	venv    venv
	prefix  string   // the standard library is below prefix/lib or lib64; "" if it is not known
	libs    []string // the folders of libraries below a prefix
}

// newPython finds out about the interpreter of a command.
func newPython(f files, c command) *python {
	p := &python{files: f, env: c.env, options: parseOptions(c.argv[1:]), file: c.argv[0]}
	bin := path.Dir(p.file)
	for _, dir := range []string{bin, path.Dir(bin)} {
		if text := f.read(path.Join(dir, "pyvenv.cfg"), maxText); text != "" {
			p.venv = parseVenv(text)
			p.venv.prefix = path.Dir(bin)
			break
		}
	}
	target := f.real(p.file)
	if p.version = versionOf(target); p.version == "" {
		p.version = p.venv.version
	}
	if p.version != "" && !p.findPrefix(path.Dir(target)) && p.venv.home != "" {
		p.findPrefix(p.real(p.venv.home)) // the interpreter is a copy
	}
	return p
}

// findPrefix searches the directory of the interpreter, and then those above, for the standard
// library. Fedora and others have it in lib64, and pure packages in lib.
func (p *python) findPrefix(dir string) bool {
	for ; ; dir = path.Dir(dir) {
		for _, libs := range [][]string{{"lib"}, {"lib64", "lib"}} {
			if p.isFile(path.Join(dir, libs[0], "python"+p.version, "os.py")) {
				p.prefix, p.libs = dir, libs
				return true
			}
		}
		if dir == "/" {
			return false
		}
	}
}

var versionedName = pattern{expr: `^python(\d+\.\d+t?)$`}

// versionOf is the version in the name of an interpreter, such as /usr/bin/python3.11.
func versionOf(file string) string {
	if m := versionedName.compiled().FindStringSubmatch(path.Base(file)); m != nil {
		return m[1]
	}
	return ""
}

// venv is a virtual environment as pyvenv.cfg describes it. Its packages come before those of the
// interpreter. The zero value is none.
type venv struct {
	prefix     string // its directory
	home       string // the directory of the interpreter that it was made from
	version    string // "3.11"; "" if it is not known
	systemSite bool   // the packages of that interpreter can be imported too
}

const maxText = 1 << 16

var leadingVersion = pattern{expr: `^\d+\.\d+`}

// parseVenv parses pyvenv.cfg as python's site module does; virtualenv and uv write version_info in
// place of version.
func parseVenv(text string) venv {
	v := venv{systemSite: true}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "include-system-site-packages":
			v.systemSite = strings.ToLower(value) == "true"
		case "home":
			v.home = value
		case "version", "version_info":
			v.version = leadingVersion.compiled().FindString(value)
		}
	}
	return v
}
