package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/envmap"
)

// Every help starts with the usage and an example, has the exit codes, and fits on a terminal.
func TestHelpIsComplete(t *testing.T) {
	for _, c := range allCommands() {
		help := c.help()
		if !strings.HasPrefix(help, "Usage: rdzv "+c.Name()) {
			t.Errorf("the help of %s does not begin with its usage:\n%s", c.Name(), help)
		}
		_, text, _ := strings.Cut(help, "\n\n")
		example, _, _ := strings.Cut(text, "\n\n")
		if !strings.HasPrefix(example, "    ") || !strings.Contains(example, "rdzv ") {
			t.Errorf("the help of %s has no example after the usage, but\n%s", c.Name(), example)
		}
		if !strings.Contains(help, "\nExit status") {
			t.Errorf("the help of %s has no paragraph Exit status", c.Name())
		}
		if c.Hidden && !strings.Contains(overview, `"rdzv `+c.Name()) {
			t.Errorf("the overview does not mention %s", c.Name())
		}
	}
	for _, text := range append([]string{overviewHelp(allCommands()), briefHelp()}, helps()...) {
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); len(line) > 80 ||
				strings.TrimRight(line, " ") != line {
				t.Errorf("%d columns, want at most 80 and no space at the end: %q", len(line), line)
			}
		}
	}
}

func helpOf(t *testing.T, name string) string {
	t.Helper()
	c, ok := allCommands().find(name)
	if !ok {
		t.Fatalf("there is no command %s", name)
	}
	return c.help()
}

func helps() (texts []string) {
	for _, c := range allCommands() {
		texts = append(texts, c.help())
	}
	return texts
}

// What a user reads first fits on a terminal of 24 lines, with the next prompt, and the usual flags
// of exec on one of 40.
func TestHelpFitsOnAScreen(t *testing.T) {
	if n := strings.Count(overviewHelp(allCommands()), "\n"); n > 23 {
		t.Errorf("rdzv help has %d lines, want at most 23", n)
	}
	if n := strings.Count(briefHelp(), "\n"); n > 39 {
		t.Errorf("rdzv exec -h has %d lines, want at most 39", n)
	}
}

// The flags of exec -h are flags of exec.
func TestBriefHelpHasFlagsOfExec(t *testing.T) {
	known := options.New().ExecFlags()
	for _, brief := range briefFlags {
		if flag := known.Lookup(brief[0]); flag == nil || flag.Hidden {
			t.Errorf("exec has no flag --%s", brief[0])
		}
	}
}

// The help of a command has every flag with its variable and its default.
func TestHelpNamesEveryFlag(t *testing.T) {
	for _, c := range allCommands() {
		texts := flagTexts(t, c.help())
		for _, g := range c.groups {
			f := flags.Define(flags.New(c.Name()), []flags.Group{g})
			f.VisitAll(func(flag *pflag.Flag) {
				switch text, hasText := texts[flag.Name]; {
				case hasText && !g.NoEnv:
					checkFlagText(t, c.Name(), flag, text)
				case !hasText && !g.Brief, !strings.Contains(c.help(), "--"+flag.Name):
					t.Errorf("the help of %s does not have --%s", c.Name(), flag.Name)
				}
			})
		}
	}
}

func checkFlagText(t *testing.T, command string, f *pflag.Flag, text string) {
	t.Helper()
	want := []string{flags.Variable(f.Name)}
	if value := defaultText(f); value != "" {
		want = append(want, "("+value+")")
	}
	if f.Shorthand != "" {
		want = append(want, "-"+f.Shorthand+", ")
	}
	for _, part := range want {
		if !strings.Contains(text+" ", part) {
			t.Errorf("rdzv %s --%s: the help is %q, want %q in it", command, f.Name, text, part)
		}
	}
}

// defaultText is a flag's default as help prints it, "" if help need not print it.
func defaultText(f *pflag.Flag) string {
	if d, err := time.ParseDuration(f.DefValue); err == nil && d != 0 {
		return strings.Replace(d.String(), "m0s", "m", 1)
	}
	if slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
		return ""
	}
	return f.DefValue
}

var flagLine = regexp.MustCompile(`^    (?:-\w, )?--([a-z-]+)`)

// flagTexts are the lines about each flag in a help, joined to one.
func flagTexts(t *testing.T, help string) map[string]string {
	t.Helper()
	texts, last := map[string]string{}, ""
	for line := range strings.Lines(help) {
		switch m := flagLine.FindStringSubmatch(line); {
		case m != nil:
			last = m[1]
			if texts[last] != "" {
				t.Errorf("the help has --%s twice", last)
			}
			texts[last] = line
		case last != "" && strings.HasPrefix(line, strings.Repeat(" ", 28)):
			texts[last] += line
		default:
			last = ""
		}
	}
	for name, text := range texts {
		texts[name] = strings.Join(strings.Fields(text), " ")
	}
	return texts
}

// The help of exec has every launcher of --launcher, field of a template and mode of --device.
func TestHelpNamesEveryChoice(t *testing.T) {
	for what, words := range map[string][]string{
		"launcher": envmap.Choices(), "field": envmap.Fields(), "device mode": envmap.DeviceModes(),
	} {
		for _, word := range words {
			pattern := `\b` + word + `\b`
			if what == "field" {
				pattern = `\{` + word + `\}`
			}
			if !regexp.MustCompile(pattern).MatchString(helpOf(t, "exec")) {
				t.Errorf("the help of exec does not have the %s %s", what, word)
			}
		}
	}
}
