package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var (
	torchrunRow  = regexp.MustCompile(`(?m)^\| ([^|]*) \| (.*) \|$`)
	torchrunFlag = regexp.MustCompile("`--?([a-z_]+)")
)

// otherLaunchers are the flags of foreignFlags that are other launchers'.
var otherLaunchers = map[string]bool{"n": true, "np": true, "x": true, "hostfile": true, "H": true,
	"host": true}

// The table in docs/usage.md has each of torchrun's flags that exec knows. A flag in its first
// column is the one of exec in the second, or exec names another way in a hint.
func TestTorchrunTable(t *testing.T) {
	usage, err := os.ReadFile("../../docs/usage.md")
	fatalIf(t, err)
	_, section, _ := strings.Cut(string(usage), "\n## From torchrun\n")
	section, _, _ = strings.Cut(section, "\n## ")
	flags := newOptions().execFlags()
	rows := map[string]bool{}
	for _, row := range torchrunRow.FindAllStringSubmatch(section, -1) {
		for _, flag := range torchrunFlag.FindAllStringSubmatch(row[1], -1) {
			name := string(canonical(flags, flag[1]))
			rows[strings.ReplaceAll(flag[1], "_", "-")] = true
			checkTorchrunFlag(t, flags, flag[1], name, row[2])
		}
	}
	for name := range foreignFlags() {
		if !rows[name] && !otherLaunchers[name] {
			t.Errorf("the table does not have torchrun's --%s", name)
		}
	}
	for _, flag := range torchrunFlags {
		name := flag[0]
		if !rows[name] {
			t.Errorf("the table does not have torchrun's --%s", name)
		}
	}
}

func checkTorchrunFlag(t *testing.T, flags *pflag.FlagSet, torchrun, name, equivalent string) {
	t.Helper()
	if flags.Lookup(name) != nil {
		if !strings.HasPrefix(equivalent, "`--"+name) {
			t.Errorf("--%s is --%s in exec, the table says %s", torchrun, name, equivalent)
		}
	} else if foreignFlags()[name] == "" {
		t.Errorf("exec neither knows --%s nor hints at %s", torchrun, equivalent)
	}
}

func TestWithoutTorchrun(t *testing.T) {
	for program, want := range map[string]string{
		"python3 train.py":                   "",
		"python3 -m train torchrun":          "",
		"torchrun":                           "rdzv exec -- python3 SCRIPT",
		"torchrun -m package":                "rdzv exec -- python3 SCRIPT",
		"/venv/bin/torchrun train.py --lr 1": "rdzv exec -- python3 train.py --lr 1",
		"torchrun --nnodes=2 --nproc_per_node=4 train.py --nproc_per_node=8": "rdzv exec " +
			"--nproc-per-node 4 -- python3 train.py --nproc_per_node=8",
		"python3 -m torch.distributed.run --nproc-per-node gpu train.py": "rdzv exec " +
			"--nproc-per-node gpu -- python3 train.py",
		"python -m torch.distributed.launch a.py": "rdzv exec -- python3 a.py",
	} {
		if got := withoutTorchrun(strings.Fields(program)); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}
