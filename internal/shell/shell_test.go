package shell

import "testing"

func TestLine(t *testing.T) {
	words := []string{"python3", "-c", "import os\nprint('a', \"b\")\t\x1b", "--lr=1e-3", "",
		"it's", "a b", "é"}
	const want = `python3 -c $'import os\nprint(\'a\', "b")\t\x1b' --lr=1e-3 '' 'it'\''s' 'a b' é`
	if got := Line(words...); got != want {
		t.Errorf("Line(%q) = %s\nwant %s", words, got, want)
	}
}
