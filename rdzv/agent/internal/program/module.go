package program

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// runsModule notes that python runs a module with the arguments rest. A module in a site directory
// is not the user's own code.
func (c *command) runsModule(p *python, module string, rest []string) {
	if c.opaque {
		return
	}
	c.script.Words = c.given - len(rest)
	top, _, _ := strings.Cut(module, ".")
	if top == "" || strings.Contains(module, "/") {
		return
	}
	places := p.places()
	i := slices.IndexFunc(places, func(in place) bool { return p.hasModule(in.dir, top) })
	switch {
	case i < 0 && p.lacksModule(places, top):
		text := fmt.Sprintf("%q finds no module %q", p.file, top)
		if p.options.searchesDir() {
			text += fmt.Sprintf(", also not in %q", p.dir)
		}
		c.fail(&StartError{Text: text, Missing: true, Setting: "PYTHONPATH"})
	case i >= 0 && !places[i].site:
		file := path.Join(places[i].dir, strings.ReplaceAll(module, ".", "/"))
		if !p.isDir(file) {
			file += ".py"
		}
		c.script.Name, c.script.Digest = module, p.digest(p.codeOf(file))
	}
}

// hasModule tells whether a directory has a module or a package, as far as its name tells.
func (p *python) hasModule(dir, name string) bool {
	return p.isFile(path.Join(dir, name+".py")) || p.isDir(path.Join(dir, name))
}

// lacksModule tells whether python certainly does not find a module that hasModule does not find in
// places: whatever could provide it in another way makes it uncertain.
func (p *python) lacksModule(places []place, name string) bool {
	if p.prefix == "" || p.variable("PYTHONHOME") != "" {
		return false
	}
	isModule := func(file string) bool { return strings.HasPrefix(file, name+".") }
	for _, dir := range p.searched(places) {
		files, err := fs.ReadDir(p.fsys, p.name(dir))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil: // a zip file, or a directory that can be searched but not listed
			return false
		}
		standard := dir == p.standard()
		for _, file := range files {
			custom := file.Name() == "sitecustomize.py" || file.Name() == "usercustomize.py"
			if file.Name() == name || isModule(file.Name()) || custom && !standard ||
				p.mayImport(path.Join(dir, file.Name())) {
				return false
			}
		}
	}
	return true
}

// searched are the directories in which python searches for modules, also those of .pth files and
// of the standard library.
func (p *python) searched(places []place) (dirs []string) {
	for _, in := range places {
		dirs = append(dirs, in.dir)
		if in.site {
			dirs = append(dirs, p.pthDirs(in.dir)...)
		}
	}
	return append(dirs, p.standard(), path.Join(p.standard(), "lib-dynload"))
}

// standard is the directory of the standard library.
func (p *python) standard() string {
	return path.Join(p.prefix, p.libs[0], "python"+p.version)
}

// harmless are files whose code does not change where python searches for modules.
var harmless = []string{"distutils-precedence.pth", "_virtualenv.pth"}

// mayImport tells whether a file is a .pth file with code, which may change where python searches.
func (p *python) mayImport(file string) bool {
	if !strings.HasSuffix(file, ".pth") || slices.Contains(harmless, path.Base(file)) {
		return false
	}
	text := p.read(file, maxText)
	return strings.HasPrefix(text, "import") || strings.Contains(text, "\nimport") || text == ""
}
