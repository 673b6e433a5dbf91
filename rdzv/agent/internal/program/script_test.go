package program

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestIsScript(t *testing.T) {
	fsys := fstest.MapFS{
		"opt/tool":  {Data: []byte("#!/usr/bin/env python3\nimport torch\n")},
		"opt/a.out": {Data: []byte("\x7fELF\x02")},
		"opt/empty": {},
	}
	for _, row := range []struct {
		file, command string
		want          bool
	}{
		{"/usr/bin/python3", "python3 main.py", true},
		{"/usr/bin/python3.13t", "python3.13t -m train", true},
		{"/opt/conda/bin/python", "/opt/conda/bin/python -c 1", true},
		{"/usr/bin/dash", "/bin/sh -c ./a.out", true},
		{"/usr/bin/bash", "bash run.sh", true},
		{"/opt/tool", "tool --epochs 3", true},
		{"/usr/bin/numactl", "numactl -N0 python3 main.py", true},
		{"/usr/bin/uv", "uv run main.py", true},
		{"/opt/a.out", "./a.out --crash shell python.cfg", false},
		{"/opt/empty", "empty", false},
		{"/opt/missing", "missing", false},
		{"../tool", "../tool", false},
	} {
		if got := IsScript(fsys, row.file, strings.Fields(row.command)); got != row.want {
			t.Errorf("IsScript(%q, %q) = %v, want %v", row.file, row.command, got, row.want)
		}
	}
}
