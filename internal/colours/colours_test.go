package colours

import (
	"regexp"
	"testing"
)

var (
	colour   = regexp.MustCompile("\x1b\\[[0-9;:]*m")
	sequence = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|` +
		`\][^\x07\x1b]*(?:\x07|\x1b\\)|` +
		`[ -/]*[0-Z^-~])`)
)

// FuzzEscapes: both functions remove what a regular expression finds.
func FuzzEscapes(f *testing.F) {
	for _, text := range []string{
		"", "plain", "\x1b[1;31mred\x1b[0m", "\x1b[38:5:1mx", "\x1b[2K\r 3%", "\x1b[?25l", "\x1b]0;title\x07x",
		"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "\x1b]no end", "\x1b(B", "\x1b7\x1b8", "\x1b", "\x1b[", "\x1b[1",
		"\x1b\x1b[1m", "\x1b[1\x1b[2mx", "\x1b\\x", "\x1b]x\x1by",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := Removed(text), colour.ReplaceAllString(text, ""); got != want {
			t.Errorf("Removed(%q) = %q, want %q", text, got, want)
		}
		if got, want := WithoutEscapes(text), sequence.ReplaceAllString(text, ""); got != want {
			t.Errorf("WithoutEscapes(%q) = %q, want %q", text, got, want)
		}
	})
}
