// Package advice recognises programs of exec that should not be its program.
package advice

import (
	"path/filepath"
	"slices"
	"strings"

	"rdzv/internal/shell"
)

// WithoutTorchrun returns the command line that runs a program of torchrun's without it, "" for
// other programs: torchrun starts workers and agrees on their ranks itself, as the launchers of
// accelerate and DeepSpeed do.
func WithoutTorchrun(program []string) string {
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
		if slices.Contains(workersFlags, name) && value != "" {
			words = append(words, "--nproc-per-node", value)
		}
	}
	return shell.Line(slices.Concat(words, []string{"--", "python3"}, own[script:])...)
}

// StartsWorkers tells whether a program starts the workers of its node itself, as torchrun does.
func StartsWorkers(program []string) bool {
	if len(program) == 0 {
		return false
	}
	_, is := torchrunArgs(program)
	return is
}

// workersFlags are the flags of torchrun, accelerate and DeepSpeed for the number of workers.
var workersFlags = []string{"--nproc-per-node", "--num-processes", "--num-gpus"}

// torchrunArgs are the arguments of torchrun, of its module, or of a launcher that is based on it
// or does the same; ok is false for another program.
func torchrunArgs(program []string) (args []string, ok bool) {
	modules := []string{"torch.distributed.run", "torch.distributed.launch"}
	name := filepath.Base(program[0])
	if strings.HasPrefix(name, "python") && len(program) > 1 && program[1] == "-u" { // by exec -m
		program = program[1:]
	}
	switch {
	case name == "torchrun", name == "deepspeed":
		return program[1:], true
	case name == "accelerate" && len(program) > 1 && program[1] == "launch":
		return program[2:], true
	case strings.HasPrefix(name, "python") && len(program) > 2 && program[1] == "-m" &&
		slices.Contains(modules, program[2]):
		return program[3:], true
	}
	return nil, false
}

// OuterLauncher is the form of the command line in which a launcher that is the program of exec
// starts rdzv instead, "" for other programs.
func OuterLauncher(program []string) string {
	name := filepath.Base(program[0])
	if !slices.Contains([]string{"mpirun", "mpiexec", "mpiexec.hydra", "prterun", "srun"}, name) {
		return ""
	}
	return name + " goes before rdzv: " + name + " ... rdzv exec -- PROGRAM"
}
