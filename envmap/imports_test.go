package envmap_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// direct are the packages that envmap may import: they make it pure, and cheap before main.
var direct = []string{"errors", "io/fs", "maps", "path", "slices", "strconv", "strings"}

// forbidden must not come in by a detour either.
var forbidden = map[string]string{
	"os":            "the environment and files are arguments",
	"net":           "it is not its business",
	"context":       "nothing here takes time",
	"fmt":           "its initialisation, and reflect's, come before that of get-rank",
	"reflect":       "its initialisation comes before that of get-rank",
	"regexp":        "its initialisation comes before that of get-rank",
	"sort":          "it brings in reflect",
	"log":           "messages are values",
	"encoding/json": "it brings in reflect",
	"text/template": "it brings in reflect",
}

func TestImports(t *testing.T) {
	for _, name := range goList(t, "-f", `{{join .Imports "\n"}}`, ".") {
		if !slices.Contains(direct, name) {
			t.Errorf("envmap imports %s; allowed are %v", name, direct)
		}
	}
	for _, name := range goList(t, "-deps", ".") {
		if why := forbidden[name]; why != "" {
			t.Errorf("envmap depends on %s: %s", name, why)
		}
	}
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	return strings.Fields(string(out))
}
