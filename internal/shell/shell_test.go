package shell

import (
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	words := []string{"python3", "-c", "import os\nprint('a', \"b\")\t\x1b", "--lr=1e-3", "",
		"it's", "a b", "é"}
	const want = `python3 -c $'import os\nprint(\'a\', "b")\t\x1b' --lr=1e-3 '' 'it'\''s' 'a b' é`
	if got := Line(words...); got != want {
		t.Errorf("Line(%q) = %s\nwant %s", words, got, want)
	}
}

// A long PATH is cut after a directory, so that it does not hide what follows it in a message.
func TestPath(t *testing.T) {
	const first = "/home/you/venv/bin:/usr/local/bin"
	for path, want := range map[string]string{
		"": `""`, first: `"` + first + `"`,
		first + strings.Repeat(":/opt/tools/bin", 9): `"` + first + `:/opt/tools/bin:..."`,
		strings.Repeat("/long", 20):                  `":..."`,
	} {
		if got := Path(path); got != want {
			t.Errorf("Path(%q) = %s, want %s", path, got, want)
		}
	}
}
