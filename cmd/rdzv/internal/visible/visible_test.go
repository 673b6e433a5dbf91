package visible

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	for line, want := range map[string]string{
		"":                               "",
		"naïve node-1\t日本":               "naïve node-1\t日本",
		"\x1b[31mred":                    `\x1b[31mred`,
		"\x1b]0;title\a":                 `\x1b]0;title\a`,
		"\x1b[2J":                        `\x1b[2J`,
		"\r\n":                           `\r\n`,
		"\x00\x7f\u0085\u009b":           `\x00\x7f\u0085\u009b`,
		"\u202egnp.exe":                  `\u202egnp.exe`,
		"\xff\xfe":                       `\xff\xfe`,
		`C:\x`:                           `C:\x`,
		"\ufffd":                         "\ufffd",
		"line\u2028separator\u00a0space": `line\u2028separator\u00a0space`,
	} {
		if got := Line(line); got != want {
			t.Errorf("Line(%q) = %q, want %q", line, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("\x1b\x1b[m[2J\u202e\xff")
	f.Fuzz(func(t *testing.T, line string) {
		got := Line(line)
		bad := func(r rune) bool { return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }
		if strings.ContainsFunc(got, bad) || !utf8.ValidString(got) {
			t.Errorf("Line(%q) = %q contains control characters", line, got)
		}
		if again := Line(got); again != got {
			t.Errorf("Line(%q) = %q, of which visible makes %q", line, got, again)
		}
	})
}
