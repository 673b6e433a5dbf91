package imports

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

var testNames = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")

// The tests that docs/security.md names exist.
func TestTestsOfSecurityPage(t *testing.T) {
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "grep", "-rh", "--include=*_test.go", "^func ",
		".").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := testNames.FindAllSubmatch(page, -1)
	if len(names) == 0 {
		t.Error("docs/security.md names no test")
	}
	for _, name := range names {
		if !bytes.Contains(out, append(append([]byte("func "), name[1]...), '(')) {
			t.Errorf("docs/security.md names %s, which does not exist", name[1])
		}
	}
}
