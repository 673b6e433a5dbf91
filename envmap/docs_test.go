package envmap

import (
	"os"
	"strings"
	"testing"
)

// The pages list the launchers in the order of detection.
func TestDocumentationListsLaunchersInOrder(t *testing.T) {
	for page, heading := range map[string]string{
		"../docs/reference/environment.md": "## Launchers",
		"../dev/launchers.md":              "## What is recognised",
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), heading)
		at := 0
		for _, l := range order() {
			i := strings.Index(table, "\n| `"+string(l.name)+"` |")
			if i < at {
				t.Errorf("%s is missing in the table of %s, or out of order", l.name, page)
			}
			at = i
		}
	}
}
