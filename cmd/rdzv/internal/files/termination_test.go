package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTerminationLog(t *testing.T) {
	const pod, own = "KUBERNETES_SERVICE_HOST", "RDZV_TERMINATION_LOG"
	for name, c := range map[string]struct {
		env   map[string]string
		want  string
		given bool
	}{
		"pod":                    {map[string]string{pod: "10.96.0.1"}, "/dev/termination-log", false},
		"outside Kubernetes":     {nil, "", false},
		"off":                    {map[string]string{pod: "1", own: "off"}, "", false},
		"another file":           {map[string]string{pod: "1", own: "/t/log"}, "/t/log", true},
		"a file outside of pods": {map[string]string{own: "/t/log"}, "/t/log", true},
	} {
		if path, given := terminationLog(c.env); path != c.want || given != c.given {
			t.Errorf("%s: the path is %q, given: %t", name, path, given)
		}
	}
}

func TestWriteOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	if err := writeOnce(path, "why"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("created %v", left)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{"first\n", "second"} {
		if err := writeOnce(path, message); err != nil {
			t.Error(err)
		}
	}
	if text, _ := os.ReadFile(path); string(text) != "first" {
		t.Errorf("the log has %q", text)
	}
	if err := writeOnce(dir, "why"); err == nil {
		t.Error("a directory was accepted")
	}
}

// A message is cut between two characters, and its beginning stays.
func TestClip(t *testing.T) {
	for _, filler := range []string{"x", "é", "世", "🙂", "x🙂"} {
		text := clip("rank 3 failed: " + strings.Repeat(filler, maxLen))
		if len(text) > maxLen || len(text) < maxLen-6 || !utf8.ValidString(text) ||
			!strings.HasPrefix(text, "rank 3 failed: ") || !strings.HasSuffix(text, "...") {
			t.Errorf("of %q: %d bytes, valid %t, %q", filler, len(text), utf8.ValidString(text), text[len(text)-9:])
		}
	}
	if text := clip("a\xffb\n"); text != "a\uFFFDb" {
		t.Errorf("clip made %q", text)
	}
}
