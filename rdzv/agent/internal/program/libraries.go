package program

import (
	"io/fs"
	"path"
)

// Libraries are those that a torch uses on GPUs, as far as files tell. A node check reports them.
type Libraries struct {
	Built string // what torch was built for: "CUDA 12.4", "HIP 6.2", "CPUs only"; "" if not known
	NCCL  string // version of the package with NCCL; "" if there is none, as where it is part of torch
}

var (
	cudaLine = pattern{expr: `(?m)^cuda[ \t]*(?::[^=\n]*)?=[ \t]*(?:['"]([\w.+-]+)['"]|None)`}
	hipLine  = pattern{expr: `(?m)^hip[ \t]*(?::[^=\n]*)?=[ \t]*(?:['"]([\w.+-]+)['"]|None)`}
	// The packages of PyPI, which torch 2.0 and later from there require, and of conda.
	ncclPackage = pattern{expr: `^nvidia_nccl_cu\d+-([\d.]+)\.dist-info$`}
	ncclRecord  = pattern{expr: `^nccl-([\d.]+)-.*\.json$`}
)

// Libraries reads what this torch was built for, and which NCCL is installed beside it.
func (t Torch) Libraries(fsys fs.FS) (l Libraries) {
	if t.Dir == "" {
		return l
	}
	f := files{fsys, "/"}
	text := f.read(path.Join(t.Dir, "torch/version.py"), maxText)
	cuda := cudaLine.compiled().FindStringSubmatch(text)
	hip := hipLine.compiled().FindStringSubmatch(text)
	switch {
	case cuda != nil && cuda[1] != "":
		l.Built = "CUDA " + cuda[1]
	case hip != nil && hip[1] != "":
		l.Built = "HIP " + hip[1]
	case cuda != nil && hip != nil:
		l.Built = "CPUs only"
	}
	l.NCCL = f.versionIn(t.Dir, &ncclPackage)
	if t.Conda {
		l.NCCL = f.versionIn(path.Join(t.Dir, "../../../conda-meta"), &ncclRecord)
	}
	return l
}

// versionIn is the part in parentheses of the first name in a directory that matches.
func (f files) versionIn(dir string, p *pattern) string {
	for _, name := range f.list(dir) {
		if m := p.compiled().FindStringSubmatch(name); m != nil {
			return m[1]
		}
	}
	return ""
}
