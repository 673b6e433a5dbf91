package program

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Torch is an installed torch. The zero value is none.
type Torch struct {
	Dir     string // that python searches: the package is Dir/torch
	Version string // such as "2.6.0+cu124"; "" if it is not known
	Conda   bool   // conda has installed it
}

// findTorch finds the torch that the interpreter would import.
func (p *python) findTorch() Torch {
	for _, place := range p.places() {
		if p.hasTorch(place.dir) {
			return p.torchIn(place.dir)
		}
		if !place.site {
			continue
		}
		dirs := p.pthDirs(place.dir)
		if i := slices.IndexFunc(dirs, p.hasTorch); i >= 0 {
			return p.torchIn(dirs[i])
		}
	}
	return Torch{}
}

func (p *python) hasTorch(dir string) bool {
	return p.isFile(path.Join(dir, "torch/__init__.py"))
}

func (p *python) torchIn(dir string) Torch {
	version := parseVersion(p.read(path.Join(dir, "torch/version.py"), maxText))
	return Torch{Dir: dir, Version: version, Conda: p.fromConda(dir)}
}

var versionLine = pattern{expr: `(?m)^__version__[ \t]*(?::[^=\n]*)?=[ \t]*['"]([\w.+!-]+)['"]`}

// parseVersion returns the version that torch/version.py assigns; "" if there is none.
func parseVersion(text string) string {
	if m := versionLine.compiled().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

var condaRecord = pattern{expr: `^pytorch-\d.*\.json$`}

// fromConda tells whether conda has installed torch into PREFIX/lib/python3.11/site-packages: then
// it has a record of it.
func (p *python) fromConda(dir string) bool {
	prefix := path.Dir(path.Dir(path.Dir(dir)))
	return slices.ContainsFunc(p.list(path.Join(prefix, "conda-meta")),
		condaRecord.compiled().MatchString)
}

var (
	release       = pattern{expr: `^(\d+)\.(\d+)`}
	officialBuild = pattern{expr: `^(cu\d|cpu|rocm|xpu)`}
)

// MayLackLibuv tells whether this torch uses libuv by default and may have been built without it:
// 2.4 or later, and neither one of PyTorch's own builds, whose versions end with +cu124, +cpu and
// the like, nor conda's. Debian's torch is such a one.
func (t Torch) MayLackLibuv() bool {
	m := release.compiled().FindStringSubmatch(t.Version)
	if m == nil || t.Conda {
		return false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	_, build, _ := strings.Cut(t.Version, "+")
	return (major > 2 || major == 2 && minor >= 4) && !officialBuild.compiled().MatchString(build)
}
