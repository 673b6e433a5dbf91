package facts

import (
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/program"
)

func TestFacts(t *testing.T) {
	const site = "usr/lib/python3.11/site-packages/torch/"
	installed := fstest.MapFS{
		"home/u/main.py":           {Data: []byte("hello\n")},
		"usr/bin/python3.11":       {Mode: 0o755},
		"usr/bin/bash":             {Mode: 0o755},
		"usr/lib/python3.11/os.py": {},
		site + "version.py":        {Data: []byte("__version__ = '2.6.0'")},
	}
	const script, python = "script main.py crc32:363a3020", "python 3.11"
	torch := &fstest.MapFile{}
	for _, c := range []struct {
		program  []string
		hasTorch bool
		want     []string
	}{
		{[]string{"python3.11", "main.py", "1"}, true, []string{script, python, "torch 2.6.0"}},
		{[]string{"python3.11", "main.py"}, false, []string{script, python, "torch not found"}},
		{[]string{"python3.11", "-c", "1"}, true, []string{python, "torch 2.6.0"}},
		{[]string{"bash", "main.py"}, true, []string{script}}, // it may run any python
		{[]string{"./a.out"}, true, nil},
	} {
		delete(installed, site+"__init__.py")
		if c.hasTorch {
			installed[site+"__init__.py"] = torch
		}
		env := envmap.Env{"PATH": "/usr/bin"}
		p := program.Inspect(installed, c.program, env, "/home/u")
		var got []string
		for _, f := range Of(c.program, p, env, nil).Known {
			got = append(got, f.Name+" "+f.Value)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.program, got, c.want)
		}
	}
}

// Agents are the same program if their commands are equal up to the script, whose contents are
// compared if the arguments are equal too.
func TestComparedPrograms(t *testing.T) {
	const digest = "crc32:12345678"
	of := func(words int, argv ...string) (string, string) {
		p := program.Program{Script: program.Script{Name: "x", Digest: digest, Words: words}}
		f := Of(argv, p, nil, nil)
		return f.Program, f.Known[0].Scope
	}
	p, a := of(2, "python3", "x", "--rank", "0")
	if q, b := of(2, "python3", "x", "--rank", "1"); p != q || a == b {
		t.Errorf("other arguments: program %s and %s, scope %s and %s", p, q, a, b)
	}
	if q, b := of(2, "python3", "y", "--rank", "0"); p == q || a == b {
		t.Errorf("another script: program %s and %s, scope %s and %s", p, q, a, b)
	}
	if q, _ := of(0, "python3"); p == q {
		t.Errorf("no script: program %s and %s", p, q)
	}
}

func TestComparedVariables(t *testing.T) {
	got := comparedVariables(envmap.Env{
		"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_HCA": "mlx5_0",
		"GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "4", "OMPI_MCA_x": "1", "TORCH_LOGS": "",
		"PATH": "/bin", "XNCCL_X": "1",
	})
	want := []string{"NCCL_DEBUG", "OMP_NUM_THREADS", "TORCH_LOGS"}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
