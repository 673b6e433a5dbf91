package termlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const withLog = "36 24 0:32 / / rw - overlay overlay rw\n" +
	"812 36 8:1 /var/lib/kubelet/pods/1/containers/main/2 /dev/termination-log rw - ext4 /dev/sda1 rw\n"

func TestPath(t *testing.T) {
	pod := "KUBERNETES_SERVICE_HOST"
	for name, c := range map[string]struct {
		env    map[string]string
		mounts string
		want   string
		given  bool
	}{
		"pod":                    {map[string]string{pod: "10.96.0.1"}, withLog, defaultPath, false},
		"not mounted":            {map[string]string{pod: "10.96.0.1"}, "36 24 0:32 / / rw\n", "", false},
		"mounted below":          {map[string]string{pod: "1"}, "1 2 0:3 / /dev/termination-log/x rw\n", "", false},
		"source of another":      {map[string]string{pod: "1"}, "1 2 0:3 /dev/termination-log /x rw\n", "", false},
		"outside Kubernetes":     {nil, withLog, "", false},
		"off":                    {map[string]string{pod: "1", "RDZV_TERMINATION_LOG": "off"}, withLog, "", false},
		"another file":           {map[string]string{pod: "1", "RDZV_TERMINATION_LOG": "/t/log"}, withLog, "/t/log", true},
		"a file outside of pods": {map[string]string{"RDZV_TERMINATION_LOG": "/t/log"}, "", "/t/log", true},
	} {
		if path, given := Path(c.env, []byte(c.mounts)); path != c.want || given != c.given {
			t.Errorf("%s: Path = %q, %t", name, path, given)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	if err := Write(path, "why"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("created %v", left)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{"first\n", "second"} {
		if err := Write(path, message); err != nil {
			t.Error(err)
		}
	}
	if text, _ := os.ReadFile(path); string(text) != "first" {
		t.Errorf("the log has %q", text)
	}
	if err := Write(dir, "why"); err == nil {
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
