package main

import (
	"regexp"
	"strings"
	"testing"
)

// The manual page and each completion have every command, and its flags in its part.
func TestEveryFlagIsDocumentedAndCompleted(t *testing.T) {
	commands := listed()
	man := strings.ReplaceAll(manPage(commands), `\-`, "-")
	for _, c := range []struct{ what, text, command, flag string }{
		{"manual page", man, `\.SH "rdzv COMMAND"`,
			`(?m)^\.SH "rdzv COMMAND"\n(?:(?:[^.]|\.[^S]|\.SS).*\n)*.*--FLAG[^a-z-]`},
		{"bash completion", bashCompletion(commands), `words=".*COMMAND`,
			`\tCOMMAND\) words=".*--FLAG[^a-z-]`},
		{"zsh completion", zshCompletion(commands), `'COMMAND:`,
			`(?m)^\tCOMMAND\)\n(?:\t\t.*\n)*.*--FLAG[^a-z-]`},
		{"fish completion", fishCompletion(commands), ` -a COMMAND -d`,
			`__fish_seen_subcommand_from COMMAND'(?: -s .)? -l FLAG `},
	} {
		has := func(pattern, command, flag string) bool {
			pattern = strings.NewReplacer("COMMAND", command, "FLAG", flag).Replace(pattern)
			return regexp.MustCompile(pattern).MatchString(c.text)
		}
		for _, command := range commands {
			if !has(c.command, command.name, "") {
				t.Errorf("the %s does not have the command %s", c.what, command.name)
			}
			for _, r := range command.rows() {
				if !has(c.flag, command.name, r.name()) {
					t.Errorf("the %s does not have rdzv %s --%s", c.what, command.name, r.name())
				}
			}
		}
	}
}

// No line of text in the manual page is taken for a request.
func TestManPageRequests(t *testing.T) {
	text := roff("a\n.B no request\n'tis text\n\n    .in an example\n")
	want := "a\n\\&.B no request\n\\(aqtis text\n.PP\n.RS 4\n.nf\n\\&.in an example\n.fi\n.RE\n"
	if text != want {
		t.Errorf("roff made\n%q, want\n%q", text, want)
	}
}
