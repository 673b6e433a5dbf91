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
	torchrunFlag = regexp.MustCompile("`--?([a-z-]+)")
)

// The table in docs/coming-from/torchrun.md has each flag of torchrun that exec accepts. A flag in its first column
// is one of exec.
func TestTorchrunTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/coming-from/torchrun.md")
	fatalIf(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Flags\n")
	section, _, _ = strings.Cut(section, "\n## ")
	flags := newOptions().execFlags()
	rows := map[string]bool{}
	for _, row := range torchrunRow.FindAllStringSubmatch(section, -1) {
		for _, flag := range torchrunFlag.FindAllStringSubmatch(row[1], -1) {
			rows[flag[1]], rows[string(canonical(flags, flag[1]))] = true, true
			if flags.Lookup(flag[1]) == nil && flags.Lookup(shortName(flags, rune(flag[1][0]))) == nil {
				t.Errorf("exec does not know --%s", flag[1])
			}
		}
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		_, former := map[string]bool{"no-capture": true, "export-file": true}[flag.Name]
		if flag.Hidden && !former && !rows[flag.Name] {
			t.Errorf("the table does not have torchrun's --%s", flag.Name)
		}
	})
	for _, flag := range torchrunNames {
		if !rows[flag[0]] {
			t.Errorf("the table does not have torchrun's --%s", flag[0])
		}
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
