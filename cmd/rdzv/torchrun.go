package main

import (
	"path/filepath"
	"slices"
	"strings"

	"rdzv/internal/shell"
)

// withoutTorchrun is what runs a program of torchrun's without it, "" for other programs: torchrun
// starts workers and agrees on their ranks itself.
func withoutTorchrun(program []string) string {
	own, ok := torchrunArgs(program)
	if !ok {
		return ""
	}
	script := slices.IndexFunc(own, func(arg string) bool { return strings.HasSuffix(arg, ".py") })
	if script < 0 {
		return "rdzv exec -- python3 SCRIPT"
	}
	words := []string{"rdzv", "exec"}
	for i, arg := range own[:script] {
		name, value, together := strings.Cut(strings.ReplaceAll(arg, "_", "-"), "=")
		if !together && i+1 < script {
			value = own[i+1]
		}
		if name == "--nproc-per-node" && value != "" {
			words = append(words, "--nproc-per-node", value)
		}
	}
	return shell.Line(slices.Concat(words, []string{"--", "python3"}, own[script:])...)
}

// torchrunArgs are the arguments of torchrun, or of its module; ok is false for another program.
func torchrunArgs(program []string) (args []string, ok bool) {
	modules := []string{"torch.distributed.run", "torch.distributed.launch"}
	switch name := filepath.Base(program[0]); {
	case name == "torchrun":
		return program[1:], true
	case strings.HasPrefix(name, "python") && len(program) > 2 && program[1] == "-m" &&
		slices.Contains(modules, program[2]):
		return program[3:], true
	}
	return nil, false
}
