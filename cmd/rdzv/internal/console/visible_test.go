package console

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"rdzv/rdzv/agent"
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
		if got := visible(line); got != want {
			t.Errorf("visible(%q) = %q, want %q", line, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("\x1b\x1b[m[2J\u202e\xff")
	f.Fuzz(func(t *testing.T, line string) {
		got := visible(line)
		bad := func(r rune) bool { return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }
		if strings.ContainsFunc(got, bad) || !utf8.ValidString(got) {
			t.Errorf("visible(%q) = %q contains control characters", line, got)
		}
		if again := visible(got); again != got {
			t.Errorf("visible(%q) = %q, of which visible makes %q", line, got, again)
		}
	})
}

// Text from outside cannot control the terminal, whatever it is part of.
func TestConsoleShowsControlCharacters(t *testing.T) {
	var out strings.Builder
	c := &Console{out: &out, screen: screen{rewrites: true, size: func() (rows, columns int) { return 0, 0 }}}
	c.Warn("host %s", "a\x1b[2Jb")
	c.Hint("set \x9b")
	c.Status("waiting for %s", "\x1b[1;1Hnode")
	want := "rdzv: host a\\x1b[2Jb\nrdzv: hint: set \\x9b\n" + erase + `rdzv: waiting for \x1b[1;1Hnode`
	if out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}

func TestReportWithoutColours(t *testing.T) {
	var out strings.Builder
	c := &Console{out: &out}
	c.failureReported(agent.Failure{
		WorldSize: 2, PID: 1, Message: "\x1b[31mValueError\x1b[m: \x1b[2J",
		Stderr: []string{"\x1b[1mbold\a"},
	})
	for _, want := range []string{`message  ValueError: \x1b[2J` + "\n", `| bold\a` + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("wrote %q, want %q in it", out.String(), want)
		}
	}
}
