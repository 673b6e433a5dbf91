package program

import (
	"path"
	"strings"
)

// place is a directory in which python searches for modules. Only site directories can have .pth
// files, which add more directories.
type place struct {
	dir  string
	site bool
}

// places are the directories in which python searches for packages, in python's order (sys.path
// without the standard library).
//
// Source: site.py and getpath.py of CPython 3.11 and 3.13, and Debian's changes of site.py.
func (p *python) places() (all []place) {
	add := func(site bool, dirs ...string) {
		for _, dir := range dirs {
			all = append(all, place{p.abs(dir), site})
		}
	}
	o := p.options
	switch {
	case o.noScript || p.variable("PYTHONSAFEPATH") != "":
	case o.inDir:
		add(false, p.dir)
	case o.script != "":
		add(false, path.Dir(p.real(o.script)))
	}
	if list := p.variable("PYTHONPATH"); list != "" {
		add(false, strings.Split(list, ":")...)
	}
	if p.prefix == "" {
		return all
	}
	isVenv := p.venv.prefix != ""
	if isVenv {
		add(true, p.siteDirs(p.venv.prefix, true)...)
	}
	if isVenv && !p.venv.systemSite {
		return all
	}
	if user := p.userBase(); user != "" {
		add(true, path.Join(user, "lib", "python"+p.version, "site-packages"))
	}
	add(true, p.siteDirs(p.prefix, isVenv)...)
	return all
}

// variable is the value of a PYTHON* variable.
func (p *python) variable(name string) string {
	if p.options.noEnv {
		return ""
	}
	return p.env[name]
}

// userBase is the directory of packages that the user has installed for himself; "" if python
// ignores them.
func (p *python) userBase() string {
	switch {
	case p.options.noUser || p.variable("PYTHONNOUSERSITE") != "":
		return ""
	case p.variable("PYTHONUSERBASE") != "":
		return p.variable("PYTHONUSERBASE")
	case p.env["HOME"] != "":
		return path.Join(p.env["HOME"], ".local")
	}
	return ""
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
