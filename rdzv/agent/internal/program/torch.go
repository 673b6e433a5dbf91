package program

import (
	"path"
	"strconv"
	"strings"
)

// Torch is an installed torch. The zero value is none.
type Torch struct {
	Dir     string // of the package is Dir/torch
	Version string // such as "2.6.0+cu124"; "" if it is not known
	Unknown string // why there may be one although none was found; "" if there is none
}

// findTorch finds the torch that is installed for the interpreter.
func (p *python) findTorch() Torch {
	var unknown string
	switch {
	case p.options.isolated:
		unknown = "options of python change where it searches"
	case p.env["PYTHONHOME"] != "" || p.env["PYTHONUSERBASE"] != "":
		unknown = "variables of python change where it searches"
	}
	for _, dir := range p.places() {
		if p.isFile(path.Join(dir, "torch/__init__.py")) {
			text := p.read(path.Join(dir, "torch/version.py"), maxText)
			return Torch{Dir: dir, Version: parseVersion(text)}
		}
		for _, name := range p.list(dir) {
			if strings.HasSuffix(name, ".pth") && mayAddTorch(p.read(path.Join(dir, name), maxText)) {
				unknown = path.Join(dir, name) + " may add one"
			}
		}
	}
	return Torch{Unknown: unknown}
}

// mayAddTorch tells whether a .pth file with this text may make a torch importable that is in no
// place where python searches: it names directories, or imports something for a torch.
func mayAddTorch(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		isCode := strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !isCode || strings.Contains(line, "torch"):
			return true
		}
	}
	return false
}

// places are the directories in which python searches for installed packages, in python's order.
//
// Source: site.py and getpath.py of CPython 3.11 and 3.13, and Debian's changes of site.py.
func (p *python) places() (dirs []string) {
	if list := p.env["PYTHONPATH"]; list != "" && !p.options.isolated {
		for dir := range strings.SplitSeq(list, ":") {
			dirs = append(dirs, p.abs(dir))
		}
	}
	if p.prefix == "" {
		return dirs
	}
	isVenv := p.venv.prefix != ""
	if isVenv {
		dirs = append(dirs, p.siteDirs(p.venv.prefix, true)...)
	}
	if isVenv && !p.venv.systemSite {
		return dirs
	}
	if home := p.env["HOME"]; home != "" && p.env["PYTHONNOUSERSITE"] == "" && !p.options.isolated {
		dirs = append(dirs, path.Join(home, ".local/lib/python"+p.version, "site-packages"))
	}
	return append(dirs, p.siteDirs(p.prefix, isVenv)...)
}

// siteDirs are the directories of installed packages below a prefix. Debian has its own names for
// those of the system, Fedora has a second prefix.
func (p *python) siteDirs(prefix string, inVenv bool) (dirs []string) {
	versioned := "python" + p.version
	debian := path.Join(prefix, "lib/python3/dist-packages")
	isDebian := p.isDir(debian)
	prefixes := []string{prefix}
	if prefix == "/usr" && !isDebian {
		prefixes = []string{"/usr/local", prefix}
	}
	for _, prefix := range prefixes {
		for _, lib := range p.libs {
			if inVenv || !isDebian {
				dirs = append(dirs, path.Join(prefix, lib, versioned, "site-packages"))
			}
		}
	}
	if isDebian {
		dirs = append(dirs, path.Join(prefix, "local/lib", versioned, "dist-packages"), debian,
			path.Join(prefix, "lib", versioned, "dist-packages"))
	}
	return dirs
}

var versionLine = pattern{expr: `(?m)^__version__[ \t]*(?::[^=\n]*)?=[ \t]*['"]([\w.+!-]+)['"]`}

// parseVersion returns the version that torch/version.py assigns; "" if there is none.
func parseVersion(text string) string {
	if m := versionLine.compiled().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// LacksLibuv tells whether this torch uses libuv by default and was built without it: 2.4 or later
// of Debian, whose version ends with +debian. Of other builds it is not known.
func (t Torch) LacksLibuv() bool {
	release, build, _ := strings.Cut(t.Version, "+")
	number, rest, _ := strings.Cut(release, ".")
	major, badMajor := strconv.Atoi(number)
	number, _, _ = strings.Cut(rest, ".")
	minor, badMinor := strconv.Atoi(number)
	return build == "debian" && badMajor == nil && badMinor == nil &&
		(major > 2 || major == 2 && minor >= 4)
}
