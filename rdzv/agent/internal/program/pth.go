package program

import (
	"path"
	"strings"
)

// pthDirs are the directories that the .pth files in a site directory add: paths, and the place of
// an editable torch, which setuptools writes into a module that a .pth file imports. Other code in
// .pth files is ignored.
func (f files) pthDirs(site string) (dirs []string) {
	for _, name := range f.list(site) {
		if !strings.HasSuffix(name, ".pth") || strings.HasPrefix(name, ".") {
			continue
		}
		paths, finder := parsePth(f.read(path.Join(site, name), maxText))
		for _, dir := range paths {
			if !path.IsAbs(dir) {
				dir = path.Join(site, dir)
			}
			dirs = append(dirs, path.Clean(dir))
		}
		if finder == "" {
			continue
		}
		if torch := parseFinder(f.read(path.Join(site, finder+".py"), maxText)); torch != "" {
			dirs = append(dirs, path.Dir(path.Clean(torch)))
		}
	}
	return dirs
}

var finderImport = pattern{expr: `^import[ \t]+(__editable___torch_\w+_finder)\b`}

// parsePth returns the paths in a .pth file, and the module that finds an editable torch, ""
// without one.
func parsePth(text string) (paths []string, finder string) {
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = strings.TrimRight(line, " \t\r")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t"):
			if m := finderImport.compiled().FindStringSubmatch(line); m != nil {
				finder = m[1]
			}
		default:
			paths = append(paths, line)
		}
	}
	return paths, finder
}

var finderMapping = pattern{expr: `(?m)^MAPPING\b[^\n]*[{ ]'torch': '(/[^'\\\n]*)'`}

// parseFinder returns the directory of package torch according to a module that setuptools has
// written; "" if it is not there.
func parseFinder(text string) string {
	if m := finderMapping.compiled().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
