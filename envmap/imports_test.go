package envmap_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// direct are the packages that envmap may import. None performs I/O or has an expensive
// initialisation.
var direct = []string{
	"errors", "io/fs", "maps", "path", "slices", "strconv", "strings", "sync",
	"rdzv/internal/cgroup",
}

// forbidden packages must not be imported indirectly either.
var forbidden = map[string]string{
	"os":            "the environment and files are arguments",
	"net":           "envmap opens no connections",
	"context":       "nothing here blocks",
	"fmt":           "it and reflect would be initialised before get-rank answers",
	"reflect":       "it would be initialised before get-rank answers",
	"regexp":        "it would be initialised before get-rank answers",
	"sort":          "it imports reflect",
	"log":           "messages are returned as values",
	"encoding/json": "it imports reflect",
	"text/template": "it imports reflect",
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
