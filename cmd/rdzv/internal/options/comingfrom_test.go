package options

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"rdzv/cmd/rdzv/internal/flags"
)

var (
	// A command line of the other launcher, to the script, and the first cell of a row.
	otherLine = regexp.MustCompile(`(?m)^    (?:accelerate launch|deepspeed|fabric run) (?:.|\\\n)*? (?:train|main)\.py`)
	otherCell = regexp.MustCompile("(?m)^\\| (?:`[^`|]*`(?:, )?)+ \\|")
	otherFlag = regexp.MustCompile(`--?([a-zA-Z][\w-]*)`)
)

// The pages of docs/coming-from have a replacement for a flag of another launcher: it is a flag of
// exec too, or exec has a hint for it.
func TestFlagsOfOtherLaunchers(t *testing.T) {
	own := New().ExecFlags()
	for name, least := range map[string]int{"mpirun.md": 4, "accelerate-deepspeed-lightning.md": 20} {
		page, err := os.ReadFile("../../../../docs/coming-from/" + name)
		if err != nil {
			t.Fatal(err)
		}
		shown := append(otherLine.FindAllString(string(page), -1), otherCell.FindAllString(string(page), -1)...)
		found := otherFlag.FindAllStringSubmatch(strings.Join(shown, "\n"), -1)
		if len(found) < least {
			t.Errorf("%s has %d flags, want at least %d", name, len(found), least)
		}
		for _, flag := range found {
			known := string(flags.Canonical(own, flag[1]))
			if own.Lookup(known) == nil && flags.Foreign()[known] == "" {
				t.Errorf("%s: exec neither knows nor explains %s", name, flag[0])
			}
		}
	}
}
