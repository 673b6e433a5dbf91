package program

import (
	"testing"
	"testing/fstest"
)

// The versions are those of torch/version.py of Debian 12 and of PyTorch's wheels.
func TestLibraries(t *testing.T) {
	const dir = "env/lib/python3.11/site-packages/"
	for name, c := range map[string]struct {
		version string
		files   []string
		conda   bool
		want    Libraries
	}{
		"wheel for CUDA": {
			"__version__ = '2.6.0+cu124'\ncuda: Optional[str] = '12.4'\nhip: Optional[str] = None\n",
			[]string{dir + "nvidia_nccl_cu12-2.21.5.dist-info/METADATA"}, false,
			Libraries{"CUDA 12.4", "2.21.5"},
		},
		"wheel for ROCm": {
			"cuda: Optional[str] = None\nhip: Optional[str] = '6.2.41133-dd7f95766'\n", nil, false,
			Libraries{"HIP 6.2.41133-dd7f95766", ""},
		},
		"conda": {
			"cuda = '12.1'\nhip = None\n", []string{"env/conda-meta/nccl-2.20.5.1-h6103f9b_0.json"}, true,
			Libraries{"CUDA 12.1", "2.20.5.1"},
		},
		"Debian": {
			"__version__ = '1.13.0a0'\ncuda = None\nhip = None\n", nil, false,
			Libraries{"CPUs only", ""},
		},
		"unknown": {"__version__ = '9.0'\n", nil, false, Libraries{}},
	} {
		fsys := fstest.MapFS{dir + "torch/version.py": {Data: []byte(c.version)}}
		for _, file := range c.files {
			fsys[file] = &fstest.MapFile{}
		}
		torch := Torch{Dir: "/" + dir[:len(dir)-1], Conda: c.conda}
		if got := torch.Libraries(fsys); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := (Torch{}).Libraries(fstest.MapFS{}); got != (Libraries{}) {
		t.Errorf("no torch: %+v", got)
	}
}
