package options

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/flags"
)

var (
	torchrunRow  = regexp.MustCompile(`(?m)^\| ([^|]*) \| (.*) \|$`)
	torchrunFlag = regexp.MustCompile("`--?([a-z-]+)")
)

// The table in docs/coming-from/torchrun.md has each flag of torchrun that exec accepts. A flag in its first column
// is one of exec.
func TestTorchrunTable(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/coming-from/torchrun.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Flags\n")
	section, _, _ = strings.Cut(section, "\n## ")
	known := New().ExecFlags()
	rows := map[string]bool{}
	for _, row := range torchrunRow.FindAllStringSubmatch(section, -1) {
		for _, flag := range torchrunFlag.FindAllStringSubmatch(row[1], -1) {
			rows[flag[1]], rows[string(flags.Canonical(known, flag[1]))] = true, true
			if known.Lookup(flag[1]) == nil && known.ShorthandLookup(flag[1][:1]) == nil {
				t.Errorf("exec does not know --%s", flag[1])
			}
		}
	}
	known.VisitAll(func(flag *pflag.Flag) {
		_, former := map[string]bool{"no-capture": true, "export-file": true}[flag.Name]
		if flag.Hidden && !former && !rows[flag.Name] {
			t.Errorf("the table does not have torchrun's --%s", flag.Name)
		}
	})
	for _, flag := range flags.TorchrunNames {
		if !rows[flag[0]] {
			t.Errorf("the table does not have torchrun's --%s", flag[0])
		}
	}
}
