package envmap

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentNamesEveryLauncherInOrder keeps docs/launchers.md true to the order of detection.
func TestDocumentNamesEveryLauncherInOrder(t *testing.T) {
	text, err := os.ReadFile("../docs/launchers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## What is recognised")
	at := 0
	for _, l := range order {
		i := strings.Index(table, "\n| `"+string(l.name)+"` |")
		if i < at {
			t.Errorf("%s is not in the table, or not in its place", l.name)
		}
		at = i
	}
}
