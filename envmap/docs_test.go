package envmap

import (
	"os"
	"strings"
	"testing"
)

// docs/launchers.md lists the launchers in the order of detection.
func TestDocumentationListsLaunchersInOrder(t *testing.T) {
	text, err := os.ReadFile("../docs/launchers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## What is recognised")
	at := 0
	for _, l := range order() {
		i := strings.Index(table, "\n| `"+string(l.name)+"` |")
		if i < at {
			t.Errorf("%s is missing in the table of docs/launchers.md, or out of order", l.name)
		}
		at = i
	}
}
